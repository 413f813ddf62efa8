#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/hebbian.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>

#include "kernels/gradient_cases.hpp"

namespace {

using fw::Index;
using gradients::ByChunks;

template <class S> using Sum = ByChunks<fw::LinearAttention<S>>;
template <class S> using Delta = ByChunks<fw::DeltaRule<S>>;
template <class S> using Hebbian = ByChunks<fw::HebbianMemory<S>>;
using Rules = gradients::Rules<Sum, Delta>;

TEST_CASE("kernels: gradients by chunks in every size", "[kernels]") {
  gradients::check_chunks_of_every_size<Rules>();
}

TEST_CASE("kernels: gradients by chunks of every length", "[kernels]") {
  gradients::check_chunks_of_every_length<Rules>();
}

TEST_CASE("kernels: gradients by chunks with constant decays of any size", "[kernels]") {
  for (const double decay : {0.97, 0.5, 1e-8, 0.0, -0.3, 1.5})
    for (const Index steps : {5, 65, 600})
      gradients::check(Hebbian<double>({6, 9}, {decay, 0.5}), Hebbian<double>({6, 9}, {decay, 0.5}),
                       steps);
}

// Gᵀu must fade before it can overflow.
TEST_CASE("kernels: large updates that fade have finite gradients", "[kernels]") {
  const Hebbian<double> m({6, 6}, {0.0, 0.5});
  for (const Index steps : {2, 4, 8}) {
    gradients::Run<Hebbian<double>> run(m, steps);
    run.all.inputs.value.col(0) *= 1e160;
    run.all.queries.query.col(0).setZero();  // its output is the gradient of itself
    run.dstate.W *= 1e160;
    run.gradients = run.all;
    run.forward_and_backward(m, true);
    CHECK(run.gradients.inputs.key.allFinite());
  }
}

}  // namespace
