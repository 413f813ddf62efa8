#include <fastweights/kernels/decode/step.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

FASTWEIGHTS_STEP_KERNELS(, double);

}  // namespace fw::detail
