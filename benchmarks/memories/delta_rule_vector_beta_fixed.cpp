#include "../heads_of.hpp"

namespace measure {

template struct HeadsOf<VectorBetaDelta, float, 16>;
template struct HeadsOf<VectorBetaDelta, float, 64>;
template struct HeadsOf<VectorBetaDelta, float, 128>;

}  // namespace measure
