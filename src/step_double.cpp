#include <fastweights/kernels/decode/step.hpp>

namespace fw::detail {
inline namespace FASTWEIGHTS_KERNELS {

FASTWEIGHTS_STEP_KERNELS(, double);

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
