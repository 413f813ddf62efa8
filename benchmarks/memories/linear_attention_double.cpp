#include "../heads_of.hpp"

namespace measure {

template struct HeadsOf<Sum, double, Dynamic>;

}  // namespace measure
