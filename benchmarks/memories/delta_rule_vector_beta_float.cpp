#include "../heads_of.hpp"

namespace measure {

template struct HeadsOf<VectorBetaDelta, float, Dynamic>;

}  // namespace measure
