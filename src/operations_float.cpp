#include <fastweights/networks/operations.hpp>

namespace fw::inline FASTWEIGHTS_ABI::networks {

FASTWEIGHTS_OPERATIONS(, float);

}  // namespace fw::networks
