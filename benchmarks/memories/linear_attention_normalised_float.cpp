#include "../heads_of.hpp"

namespace measure {

template struct HeadsOf<NormalisedSum, float, Dynamic>;

}  // namespace measure
