#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>

#include "kernels/gradients.hpp"

namespace {

using gradients::check;

TEST_CASE("kernels: gradients for sizes fixed at compile time", "[kernels]") {
  check(fw::DeltaRule<double, 3, 17>(), fw::DeltaRule<double>({.key_size = 3, .value_size = 17}),
        9);
  check(fw::DeltaRule<double, 5, 1>(), fw::DeltaRule<double>({.key_size = 5, .value_size = 1}), 9);
  check(fw::LinearAttention<double, 1, 5>(),
        fw::LinearAttention<double>({.key_size = 1, .value_size = 5}), 9);
}

}  // namespace
