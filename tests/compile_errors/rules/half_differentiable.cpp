// error: memory rule: write_vjp(before, input, ds, dinput) and read_vjp(s, query, dy, ds, dquery)
// must both exist
#include "example.hpp"

struct OneVjp : Rule<> {
  void write_vjp(const OwnedState&, const fw::WriteToken<Rule>&, OwnedState&,
                 fw::WriteGradToken<Rule>) const {}
};
static_assert(fw::assert_memory<OneVjp>());
