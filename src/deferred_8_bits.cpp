#include <fastweights/kernels/decode/eight_bits.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

FASTWEIGHTS_EIGHT_BIT_KERNELS(, float);

}  // namespace fw::detail
