// error: gradient_error: the rule's `template <class T> Rule<T> cast() const` is missing
#include <fastweights/testing/gradient_check.hpp>

#include "example.hpp"

struct NoCast : Rule<double> {
  void write_vjp(const OwnedState&, const fw::WriteToken<Rule>&, OwnedState&,
                 fw::WriteGradToken<Rule>) const {}
  void read_vjp(const OwnedState&, const fw::ReadToken<Rule>&, const fw::OutGradToken<Rule>&,
                OwnedState&, fw::ReadGradToken<Rule>) const {}
};
void test() { fw::testing::gradient_error(NoCast(), 3); }
