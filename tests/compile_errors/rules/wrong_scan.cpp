// error: memory rule: `scan` exists, but does not take
#include "example.hpp"

struct WrongScan : Rule<> {
  void scan(OwnedState&, const fw::WriteToken<Rule>&, fw::OutToken<Rule>) const {}
};
static_assert(fw::assert_memory<WrongScan>());
