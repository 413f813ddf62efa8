// error: memory rule: write_vjp(before, w, ds, dw) and read_vjp(s, r, dy, ds, dr) must both
// exist
#include "example.hpp"

struct OneVjp : Rule<> {
  void write_vjp(const OwnedState&, const fw::WriteToken<Rule>&, OwnedState&,
                 fw::WriteGradToken<Rule>) const {}
};
static_assert(fw::assert_memory<OneVjp>());
