#include "../heads_of.hpp"

namespace measure {

template struct HeadsOf<Delta, float, Dynamic>;

}  // namespace measure
