#include "../heads_of.hpp"

namespace measure {

template struct HeadsOf<KimiDelta, float, 16>;
template struct HeadsOf<KimiDelta, float, 64>;
template struct HeadsOf<KimiDelta, float, 128>;

}  // namespace measure
