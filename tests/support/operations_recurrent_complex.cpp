// See networks_complex.cpp.

#include <complex>
#include <fastweights/networks/operations.hpp>

namespace fw::inline FASTWEIGHTS_ABI::networks {

FASTWEIGHTS_RECURRENT_OPERATIONS(, std::complex<double>);

}  // namespace fw::networks
