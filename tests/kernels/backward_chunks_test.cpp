#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/hebbian.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>

#include "kernels/gradients.hpp"

// The plain rules by chunks in every size, also where pairs are faster.
namespace {

using fw::Dynamic;
using fw::Index;

template <class M> struct ByChunks : M {
  static constexpr bool plain_coefficients = false;
  explicit ByChunks(const M& m) : M(m) {}
};

template <template <class> class M, class... Change>
void check(fw::Sizes<> sizes, Index steps, const Change&... change) {
  gradients::check(ByChunks(M<double>(sizes)), M<long double>(sizes), steps, change...);
}
template <class S> using Sum = fw::LinearAttention<S>;
template <class S> using Delta = fw::DeltaRule<S>;
template <class S>
using OneDecay = fw::GatedLinearAttention<S, Dynamic, Dynamic, fw::KeyValueDecay>;
template <class S>
using PerKey = fw::GatedDeltaRule<S, Dynamic, Dynamic, fw::KeyValueBetaVectorDecay>;
template <class S> using GatedDelta = fw::GatedDeltaRule<S>;
template <class S> using GatedSum = fw::GatedLinearAttention<S>;

template <class... Change>
void check_decays(fw::Sizes<> sizes, Index steps, const Change&... change) {
  check<OneDecay>(sizes, steps, change...);
  check<PerKey>(sizes, steps, change...);
  check<GatedDelta>(sizes, steps, change...);
  check<GatedSum>(sizes, steps, change...);
}
void check_all(fw::Sizes<> sizes, Index steps) {
  check<Sum>(sizes, steps);
  check<Delta>(sizes, steps);
  check_decays(sizes, steps);
}

TEST_CASE("kernels: gradients by chunks in every size", "[kernels]") {
  for (const Index dv : {1, 2, 7, 8, 9, 17, 33, 64})
    for (const Index dk : {1, 3, 8, 17, 40, 200}) check_all({dk, dv}, 5);
}

TEST_CASE("kernels: gradients by chunks of every length", "[kernels]") {
  for (const Index steps : {0, 1, 2, 7, 8, 9, 12, 16, 31, 130}) check_all({9, 6}, steps);
}

TEST_CASE("kernels: gradients by chunks with constant decays of any size", "[kernels]") {
  for (const double decay : {0.97, 0.5, 1e-8, 0.0, -0.3, 1.5})
    for (const Index steps : {5, 65, 600})
      gradients::check(ByChunks(fw::HebbianMemory<double>({6, 9}, {decay, 0.5})),
                       fw::HebbianMemory<long double>({6, 9}, {decay, 0.5}), steps);
}

TEST_CASE("kernels: gradients by chunks of decays near 0 and over intervals", "[kernels]") {
  for (const Index steps : {512, 1100}) check_decays({6, 9}, steps);
  check_decays({6, 9}, 600, [](auto& all) {
    for (const Index t : {0, 1, 5, 6, 40, 511, 512, 599}) all.inputs.decay.col(t).setZero();
    for (const Index t : {7, 8, 9, 31, 514}) all.inputs.decay(0, t) = 1e-200;
  });
}

// Gᵀu must fade before it can overflow.
TEST_CASE("kernels: large updates that fade have finite gradients", "[kernels]") {
  for (const Index steps : {2, 4, 8}) {
    gradients::Run<ByChunks<fw::HebbianMemory<double>>> run(
        ByChunks(fw::HebbianMemory<double>({6, 6}, {0.0, 0.5})), steps);
    run.all.inputs.value.col(0) *= 1e160;
    run.all.queries.query.col(0).setZero();  // its output is the gradient of itself
    run.dstate.W *= 1e160;
    run.gradients = run.all;
    run.forward_and_backward(ByChunks(fw::HebbianMemory<double>({6, 6}, {0.0, 0.5})), true);
    CHECK(run.gradients.inputs.key.allFinite());
  }
}

}  // namespace
