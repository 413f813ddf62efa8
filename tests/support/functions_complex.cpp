// See networks_complex.cpp.

#include <complex>
#include <fastweights/layers/fast_weights.hpp>

namespace fw::inline FASTWEIGHTS_ABI::networks {

FASTWEIGHTS_FUNCTIONS_OF_VALUES(, std::complex<double>);
FASTWEIGHTS_FAST_WEIGHTS(, std::complex<double>);

}  // namespace fw::networks
