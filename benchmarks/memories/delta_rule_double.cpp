#include "../heads_of.hpp"

namespace measure {

template struct HeadsOf<Delta, double, Dynamic>;

}  // namespace measure
