#include "../heads_of.hpp"

namespace measure {

template struct HeadsOf<KimiDelta, float, Dynamic>;

}  // namespace measure
