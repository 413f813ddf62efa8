#include <fastweights/kernels/backward/backward.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

FASTWEIGHTS_BACKWARD_KERNELS(, float);
FASTWEIGHTS_TALL_BACKWARD_KERNELS(, float);

}  // namespace fw::detail
