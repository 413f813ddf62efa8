#include <fastweights/networks/operations.hpp>

namespace fw::inline FASTWEIGHTS_ABI::networks {

FASTWEIGHTS_NETWORKS(, double);

}  // namespace fw::networks
