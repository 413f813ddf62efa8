// error: memory rule: `extend_by_sequence` exists, but does not take
#include "example.hpp"

struct WrongExtend : Rule<> {
  using Segment = OwnedState;
  void extend_by_sequence(Segment&, const fw::WriteToken<Rule>&) const {}
};
static_assert(fw::assert_memory<WrongExtend>());
