#include "../heads_of.hpp"

namespace measure {

template struct HeadsOf<VectorBetaDelta, double, Dynamic>;

}  // namespace measure
