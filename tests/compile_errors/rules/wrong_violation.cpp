// error: memory rule: `violation` exists, but is not `Violation violation(const WriteToken<M>&) const`
#include "example.hpp"

struct WrongViolation : Rule<> {
  bool violation(const fw::WriteToken<WrongViolation>&) const { return false; }
};
static_assert(fw::assert_memory<WrongViolation>());
