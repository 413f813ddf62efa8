#include "../heads_of.hpp"

namespace measure {

template struct HeadsOf<Programmer, float, 16>;
template struct HeadsOf<Programmer, float, 64>;
template struct HeadsOf<Programmer, float, 128>;

}  // namespace measure
