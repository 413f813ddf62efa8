#include "../heads_of.hpp"

namespace measure {

template struct HeadsOf<GatedSum, double, Dynamic>;

}  // namespace measure
