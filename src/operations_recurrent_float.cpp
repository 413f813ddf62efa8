#include <fastweights/networks/operations.hpp>

namespace fw::inline FASTWEIGHTS_ABI::networks {

FASTWEIGHTS_RECURRENT_OPERATIONS(, float);

}  // namespace fw::networks
