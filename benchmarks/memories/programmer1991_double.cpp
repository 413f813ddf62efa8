#include "../heads_of.hpp"

namespace measure {

template struct HeadsOf<Programmer, double, Dynamic>;

}  // namespace measure
