// The operations of networks in complex numbers, compiled once, for gradients by the complex step.

#include <complex>
#include <fastweights/any_memory/table.hpp>
#include <fastweights/networks/operations.hpp>

namespace fw::inline FASTWEIGHTS_ABI::networks {

FASTWEIGHTS_OPERATIONS(, std::complex<double>);
FASTWEIGHTS_NETWORKS(, std::complex<double>);

}  // namespace fw::networks
