#include <fastweights/kernels/decode/removal_step.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

FASTWEIGHTS_STEP_KERNELS(, float);
FASTWEIGHTS_REMOVAL_KERNELS(, float);

}  // namespace fw::detail
