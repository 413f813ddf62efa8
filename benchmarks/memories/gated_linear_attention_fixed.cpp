#include "../heads_of.hpp"

namespace measure {

template struct HeadsOf<GatedSum, float, 16>;
template struct HeadsOf<GatedSum, float, 64>;
template struct HeadsOf<GatedSum, float, 128>;

}  // namespace measure
