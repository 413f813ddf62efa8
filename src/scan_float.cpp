#include <fastweights/kernels/scan/scan.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

FASTWEIGHTS_SCAN_KERNELS(, float);
FASTWEIGHTS_TALL_SCAN_KERNELS(, float);

}  // namespace fw::detail
