#include <fastweights/layers/fast_weights.hpp>

namespace fw::inline FASTWEIGHTS_ABI::networks {

FASTWEIGHTS_FUNCTIONS_OF_VALUES(, double);
FASTWEIGHTS_FAST_WEIGHTS(, double);

}  // namespace fw::networks
