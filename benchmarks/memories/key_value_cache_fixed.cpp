#include "../heads_of.hpp"

namespace measure {

template struct HeadsOf<Cache, float, 16>;
template struct HeadsOf<Cache, float, 64>;
template struct HeadsOf<Cache, float, 128>;

}  // namespace measure
