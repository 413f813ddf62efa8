// error: memory rule: `template <class T> Rule<T> cast() const` is missing
#include <fastweights/testing/gradient_check.hpp>

#include "example.hpp"

struct NoCast : Rule<double> {
  void write_vjp(const OwnedState&, const fw::WriteToken<Rule>&, OwnedState&,
                 fw::WriteGradToken<Rule>) const {}
  void read_vjp(const OwnedState&, const fw::ReadToken<Rule>&, const fw::OutGradToken<Rule>&,
                OwnedState&, fw::ReadGradToken<Rule>) const {}
};
static_assert(fw::assert_memory<NoCast>());
