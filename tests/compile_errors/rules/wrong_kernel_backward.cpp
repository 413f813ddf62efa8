// error: memory rule: `kernel_backward` is true, but
#include "example.hpp"

struct NoKernelRule : Rule<> {
  static constexpr bool kernel_backward = true;
};
static_assert(fw::assert_memory<NoKernelRule>());
