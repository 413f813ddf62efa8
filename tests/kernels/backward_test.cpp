#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/hebbian.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>

#include "kernels/gradient_cases.hpp"

namespace {

using fw::Index;

template <class S> using Sum = fw::LinearAttention<S>;
template <class S> using Delta = fw::DeltaRule<S>;
template <class S> using Hebbian = fw::HebbianMemory<S>;
using Rules = gradients::Rules<Sum, Delta, Hebbian>;

TEST_CASE("kernels: gradients in every size", "[kernels]") { gradients::check_every_size<Rules>(); }

TEST_CASE("kernels: gradients of sequences of every length", "[kernels]") {
  gradients::check_every_length<Rules>();
}

TEST_CASE("kernels: gradients for constant decays of any size", "[kernels]") {
  for (const double decay : {0.97, 0.5, 1e-8, 0.0, -0.3, 1.5})
    for (const Index steps : {5, 65, 600})
      for (const auto& sizes : {gradients::small, gradients::large})
        gradients::check(Hebbian<double>(sizes, {decay, 0.5}), Hebbian<double>(sizes, {decay, 0.5}),
                         steps);
}

}  // namespace
