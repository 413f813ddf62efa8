#include "../heads_of.hpp"

namespace measure {

template struct HeadsOf<NormalisedSum, float, 16>;
template struct HeadsOf<NormalisedSum, float, 64>;
template struct HeadsOf<NormalisedSum, float, 128>;

}  // namespace measure
