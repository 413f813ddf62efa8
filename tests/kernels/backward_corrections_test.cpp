#include <fastweights/memories/rules/comba.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_product.hpp>
#include <fastweights/memories/rules/gated_delta_rule_2.hpp>
#include <fastweights/memories/rules/longhorn.hpp>
#include <fastweights/memories/rules/low_rank_rule.hpp>
#include <fastweights/memories/rules/rwkv6.hpp>

#include "kernels/gradients.hpp"

// Rules with other look-up keys, several corrections per token, and other orders.
namespace {

using fw::Dynamic;
using fw::Index;
using gradients::check;

template <class S> using ExactLonghorn = fw::Longhorn<S, Dynamic, Dynamic, fw::LonghornForm::exact>;
template <class S> using Iplr = fw::LowRankRule<S, Dynamic, Dynamic, fw::KeyValueRemoval>;
template <class S>
using VectorDelta = fw::DeltaRule<S, Dynamic, Dynamic, fw::NoNormaliser, fw::KeyValueVectorBeta>;

template <template <class> class M, class Change>
void check_rule(Index dk, Index dv, Index steps, const Change& change) {
  check(M<double>({dk, dv}), M<long double>({dk, dv}), steps, change, 4);
}
template <class S> using Comba = fw::Comba<S>;
template <class S> using TwoWrites = fw::GatedDeltaProduct<S, 2>;
template <class S> using ThreeWrites = fw::GatedDeltaProduct<S, 3>;
template <class S> using Rwkv7 = fw::LowRankRule<S>;
template <class S> using GatedDelta2 = fw::GatedDeltaRule2<S>;
template <class S> using Rwkv6 = fw::Rwkv6<S>;

// Keys of norm one keep the states of the order of one.
void normalise(auto& x) {
  for (Index t = 0; t < x.cols(); ++t) x.col(t) /= std::max(x.col(t).norm(), 1e-3);
}
constexpr auto tame = [](auto& all) {
  normalise(all.inputs.key);
  if constexpr (requires { all.inputs.lookup; }) normalise(all.inputs.lookup);
  if constexpr (requires { all.inputs.removal; }) {
    normalise(all.inputs.removal);
    normalise(all.inputs.replacement);
    all.inputs.removal *= -1;
    all.inputs.replacement = -0.5 * all.inputs.removal;
  }
};

template <class Change> void check_all(Index dk, Index dv, Index steps, const Change& change) {
  check_rule<Comba>(dk, dv, steps, change);
  check_rule<TwoWrites>(dk, dv, steps, change);
  check_rule<ThreeWrites>(dk, dv, steps, change);
  check_rule<Rwkv7>(dk, dv, steps, change);
  check_rule<Iplr>(dk, dv, steps, change);
  check_rule<GatedDelta2>(dk, dv, steps, change);
  check_rule<Rwkv6>(dk, dv, steps, change);
  check_rule<ExactLonghorn>(dk, dv, steps, change);
  check_rule<VectorDelta>(dk, dv, steps, change);
}

TEST_CASE("kernels: gradients of corrections in every size", "[kernels]") {
  for (const Index dv : {1, 2, 3, 7, 8, 9, 17, 33, 64})
    for (const Index dk : {1, 3, 8, 17, 40}) check_all(dk, dv, 5, tame);
}

TEST_CASE("kernels: gradients of corrections of every length", "[kernels]") {
  for (const Index steps : {0, 1, 2, 3, 4, 7, 8, 9, 16, 17, 130}) check_all(9, 6, steps, tame);
}

TEST_CASE("kernels: gradients of corrections with decays of any size", "[kernels]") {
  for (const double decay : {1.0, 1.0 / 64, 1e-8, 0.0, -0.3})
    for (const Index every : {1, 3, 20})
      check_all(9, 6, 41, [&](auto& all) {
        tame(all);
        if constexpr (requires { all.inputs.decay; })
          for (Index t = 0; t < all.inputs.decay.cols(); t += every) {
            all.inputs.decay.col(t).setConstant(decay);
            if (all.inputs.decay.rows() > 1) all.inputs.decay(1, t) = 0.9;
          }
      });
}

}  // namespace
