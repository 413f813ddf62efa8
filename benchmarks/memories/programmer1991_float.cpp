#include "../heads_of.hpp"

namespace measure {

template struct HeadsOf<Programmer, float, Dynamic>;

}  // namespace measure
