#include <fastweights/kernels/decode/deferred.hpp>

namespace fw::detail {
inline namespace FASTWEIGHTS_KERNELS {

FASTWEIGHTS_DEFERRED_KERNELS(, Eigen::bfloat16, float);
FASTWEIGHTS_DEFERRED_KERNELS(, Eigen::half, float);

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
