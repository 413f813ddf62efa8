#include "../heads_of.hpp"

namespace measure {

template struct HeadsOf<Hebbian, double, Dynamic>;

}  // namespace measure
