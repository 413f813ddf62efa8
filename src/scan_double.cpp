#include <fastweights/kernels/scan/scan.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

FASTWEIGHTS_SCAN_KERNELS(, double);
FASTWEIGHTS_TALL_SCAN_KERNELS(, double);

}  // namespace fw::detail
