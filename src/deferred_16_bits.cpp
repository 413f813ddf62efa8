#include <fastweights/kernels/decode/deferred.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

FASTWEIGHTS_DEFERRED_KERNELS(, Eigen::bfloat16, float);
FASTWEIGHTS_DEFERRED_KERNELS(, Eigen::half, float);

}  // namespace fw::detail
