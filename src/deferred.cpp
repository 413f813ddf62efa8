#include <fastweights/kernels/decode/deferred.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

FASTWEIGHTS_DEFERRED_KERNELS(, float, float);
FASTWEIGHTS_DEFERRED_KERNELS(, double, double);

}  // namespace fw::detail
