#include <fastweights/kernels/backward/backward.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

FASTWEIGHTS_BACKWARD_KERNELS(, double);
FASTWEIGHTS_TALL_BACKWARD_KERNELS(, double);

}  // namespace fw::detail
