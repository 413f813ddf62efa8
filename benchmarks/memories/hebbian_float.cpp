#include "../heads_of.hpp"

namespace measure {

template struct HeadsOf<Hebbian, float, Dynamic>;

}  // namespace measure
