// error: memory rule: `scan` takes a Trace, but
#include "example.hpp"

struct HalfTraced : Rule<> {
  struct Trace {};
  void scan(OwnedState&, const fw::WriteSequence<Rule>&, const fw::ReadSequence<Rule>&,
            fw::OutSequence<Rule>) const {}
  void scan(OwnedState&, const fw::WriteSequence<Rule>&, const fw::ReadSequence<Rule>&,
            fw::OutSequence<Rule>, Trace&) const {}
};
static_assert(fw::assert_memory<HalfTraced>());
