#include "../heads_of.hpp"

namespace measure {

template struct HeadsOf<Sum, float, Dynamic>;

}  // namespace measure
