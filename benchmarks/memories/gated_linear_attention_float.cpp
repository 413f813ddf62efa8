#include "../heads_of.hpp"

namespace measure {

template struct HeadsOf<GatedSum, float, Dynamic>;

}  // namespace measure
