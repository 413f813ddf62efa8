#include <fastweights/kernels/decode/removal_step.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

FASTWEIGHTS_STEP_KERNELS(, double);
FASTWEIGHTS_REMOVAL_KERNELS(, double);

}  // namespace fw::detail
