#include <fastweights/kernels/scan/scan.hpp>

namespace fw::detail {
inline namespace FASTWEIGHTS_KERNELS {

FASTWEIGHTS_SCAN_KERNELS(, float);
FASTWEIGHTS_TALL_SCAN_KERNELS(, float);

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
