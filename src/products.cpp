#include <fastweights/math/products.hpp>

namespace fw::detail {

FASTWEIGHTS_PRODUCTS(, float);
FASTWEIGHTS_PRODUCTS(, double);
FASTWEIGHTS_PRODUCTS(, std::complex<double>);

}  // namespace fw::detail
