#include "../heads_of.hpp"

namespace measure {

template struct HeadsOf<Hebbian, float, 16>;
template struct HeadsOf<Hebbian, float, 64>;
template struct HeadsOf<Hebbian, float, 128>;

}  // namespace measure
