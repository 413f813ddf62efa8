#include <fastweights/layers/fast_weights.hpp>

namespace fw::inline FASTWEIGHTS_ABI::networks {

FASTWEIGHTS_FUNCTIONS_OF_VALUES(, float);
FASTWEIGHTS_FAST_WEIGHTS(, float);

}  // namespace fw::networks
