#include "../heads_of.hpp"

namespace measure {

template struct HeadsOf<GatedDelta, double, Dynamic>;

}  // namespace measure
