#include <fastweights/kernels/backward/backward.hpp>

namespace fw::detail {
inline namespace FASTWEIGHTS_KERNELS {

FASTWEIGHTS_BACKWARD_KERNELS(, double);
#if EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS >= 32
FASTWEIGHTS_TALL_BACKWARD_KERNELS(, double);
#endif

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
