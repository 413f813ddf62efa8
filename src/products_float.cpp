#include <fastweights/math/products.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

FASTWEIGHTS_PRODUCTS(, float);

}  // namespace fw::detail
