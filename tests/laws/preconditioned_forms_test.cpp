#include <fastweights/memories/rules/preconditioned_delta_rule.hpp>

#include "support/laws.hpp"

namespace {

template <int Dk, int Dv> using ByRow = fw::PreconditionedDeltaRule<double, Dk, Dv, Dk>;

TEST_CASE("the preconditioned delta rule takes automatic differentiation and fixed sizes",
          "[laws][preconditioned_delta_rule]") {
  const fw::PreconditionedDeltaRule<double> rule({4, 3});
  laws::takes_autodiff(rule, false);
  laws::fixed_is_dynamic(fw::PreconditionedDeltaRule<double, 4, 3>(), rule, false);
}
TEST_CASE("the preconditioned delta rule with one decay per key row obeys the laws",
          "[laws][preconditioned_delta_rule]") {
  const ByRow<-1, -1> rule({4, 3});
  laws::every_memory(rule);
  laws::gradients_are_exact(rule, 6, false);
  laws::fixed_is_dynamic(ByRow<4, 3>(), rule, false);
}

}  // namespace
