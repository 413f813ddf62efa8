#include <fastweights/kernels/scan/scan.hpp>

namespace fw::detail {
inline namespace FASTWEIGHTS_KERNELS {

FASTWEIGHTS_SCAN_KERNELS(, double);
#if EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS >= 32
FASTWEIGHTS_TALL_SCAN_KERNELS(, double);
#endif

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
