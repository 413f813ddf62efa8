#include <fastweights/math/products.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

FASTWEIGHTS_PRODUCTS(, double);
FASTWEIGHTS_PRODUCTS(, std::complex<double>);

}  // namespace fw::detail
