#include "../heads_of.hpp"

namespace measure {

template struct HeadsOf<Delta, float, 16>;
template struct HeadsOf<Delta, float, 32>;
template struct HeadsOf<Delta, float, 48>;
template struct HeadsOf<Delta, float, 64>;
template struct HeadsOf<Delta, float, 128>;
template struct HeadsOf<Delta, double, 64>;
template struct HeadsOf<Delta, double, 128>;

}  // namespace measure
