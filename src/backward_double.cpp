#include <fastweights/kernels/backward/backward.hpp>

namespace fw::detail {
inline namespace FASTWEIGHTS_KERNELS {

FASTWEIGHTS_BACKWARD_KERNELS(, double);
FASTWEIGHTS_TALL_BACKWARD_KERNELS(, double);

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
