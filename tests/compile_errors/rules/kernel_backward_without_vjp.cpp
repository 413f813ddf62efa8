// error: fastweights: kernel_backward of a rule with `correction` needs `correction_vjp`
#include <fastweights/memories/rules/preconditioned_delta_rule.hpp>

#include "example.hpp"

struct WithoutVjp : fw::PreconditionedDeltaRule<float, 3, 4> {
  static constexpr bool kernel_backward = true;
};
static_assert(fw::assert_memory<WithoutVjp>());
