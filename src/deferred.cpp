#include <fastweights/kernels/decode/deferred.hpp>

namespace fw::detail {
inline namespace FASTWEIGHTS_KERNELS {

FASTWEIGHTS_DEFERRED_KERNELS(, float, float);
FASTWEIGHTS_DEFERRED_KERNELS(, double, double);

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
