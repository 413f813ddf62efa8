#include "../heads_of.hpp"

namespace measure {

template struct HeadsOf<Cache, float, Dynamic>;

}  // namespace measure
