#include "../heads_of.hpp"

namespace measure {

template struct HeadsOf<Cache, double, Dynamic>;

}  // namespace measure
