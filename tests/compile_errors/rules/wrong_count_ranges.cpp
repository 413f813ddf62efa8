// error: memory rule: `count_ranges` exists, but is not
#include "example.hpp"

struct WrongCountRanges : Rule<> {
  int count_ranges(const OwnedState&) const { return 3; }
};
static_assert(fw::assert_memory<WrongCountRanges>());
