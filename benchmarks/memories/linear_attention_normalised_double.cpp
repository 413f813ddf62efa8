#include "../heads_of.hpp"

namespace measure {

template struct HeadsOf<NormalisedSum, double, Dynamic>;

}  // namespace measure
