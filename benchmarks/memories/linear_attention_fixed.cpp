#include "../heads_of.hpp"

namespace measure {

template struct HeadsOf<Sum, float, 16>;
template struct HeadsOf<Sum, float, 32>;
template struct HeadsOf<Sum, float, 48>;
template struct HeadsOf<Sum, float, 64>;
template struct HeadsOf<Sum, float, 128>;
template struct HeadsOf<Sum, double, 64>;
template struct HeadsOf<Sum, double, 128>;

}  // namespace measure
