#include "../heads_of.hpp"

namespace measure {

template struct HeadsOf<GatedDelta, float, 16>;
template struct HeadsOf<GatedDelta, float, 32>;
template struct HeadsOf<GatedDelta, float, 48>;
template struct HeadsOf<GatedDelta, float, 64>;
template struct HeadsOf<GatedDelta, float, 128>;
template struct HeadsOf<GatedDelta, double, 64>;
template struct HeadsOf<GatedDelta, double, 128>;

}  // namespace measure
