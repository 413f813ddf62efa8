// error: fastweights: kernel_backward needs a delta term and one beta per token, or neither
#include "example.hpp"

struct RowBetas : fw::DeltaRule<float, 3, 4, fw::NoNormaliser, fw::KeyValueVectorBeta> {
  static constexpr bool kernel_backward = true;
};
static_assert(fw::assert_memory<RowBetas>());
