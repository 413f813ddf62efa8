// error: memory rule: `extend` exists, but not all of Segment, empty_segment()
#include "example.hpp"

struct HalfMergeable : Rule<> {
  using Segment = OwnedState;
  void extend(Segment&, const fw::WriteToken<Rule>&) const {}
};
static_assert(fw::assert_memory<HalfMergeable>());
