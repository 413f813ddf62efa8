#include <fastweights/kernels/scan/scan.hpp>

namespace fw::detail {
inline namespace FASTWEIGHTS_KERNELS {

FASTWEIGHTS_SCAN_KERNELS(, double);
FASTWEIGHTS_TALL_SCAN_KERNELS(, double);

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
