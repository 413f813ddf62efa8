#include <fastweights/kernels/backward/backward.hpp>

namespace fw::detail {
inline namespace FASTWEIGHTS_KERNELS {

FASTWEIGHTS_BACKWARD_KERNELS(, float);
FASTWEIGHTS_TALL_BACKWARD_KERNELS(, float);

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
