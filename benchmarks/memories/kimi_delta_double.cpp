#include "../heads_of.hpp"

namespace measure {

template struct HeadsOf<KimiDelta, double, Dynamic>;

}  // namespace measure
