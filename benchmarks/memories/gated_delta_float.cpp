#include "../heads_of.hpp"

namespace measure {

template struct HeadsOf<GatedDelta, float, Dynamic>;

}  // namespace measure
