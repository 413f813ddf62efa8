#include "support/hostile_states.hpp"

#include <fastweights/algorithms/backward.hpp>
#include <fastweights/algorithms/scan.hpp>
#include <fastweights/continuous/gibbs_density.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/memories/adaptors/deferred.hpp>
#include <fastweights/memories/adaptors/feature_mapped.hpp>
#include <fastweights/memories/attention/compressive_memory.hpp>
#include <fastweights/memories/attention/continuous_memory.hpp>
#include <fastweights/memories/attention/key_value_cache.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/testing/sequences.hpp>

#include "support/catch.hpp"

namespace {

using fw::Index;
using Paths = std::vector<std::string>;

// Every public call with a state, each with a copy of it.
template <class M, class Sequences>
void use_state(const M& m, fw::StateOf<M>& state, Sequences& all, Sequences& gradients) {
  const auto inputs = fw::view<fw::WriteSequence<M>>(all.inputs);
  const auto queries = fw::view<fw::ReadSequence<M>>(all.queries);
  const auto outputs = fw::view<fw::OutSequence<M>>(all.outputs);
  const auto sizes = m.signature();
  const auto token = fw::detail::token_at<fw::WriteToken<M>>(inputs, sizes.write(), 0);
  const auto query = fw::detail::token_at<fw::ReadToken<M>>(queries, sizes.read(), 0);
  const auto output = fw::detail::token_at<fw::OutToken<M>>(outputs, sizes.out(), 0);
  const auto each = [&](const auto& call) {
    auto copy = state;
    call(copy);
    return copy;
  };
  each([&](auto& s) { fw::read(m, s, query, output); });
  each([&](auto& s) { fw::write(m, s, token); });
  each([&](auto& s) { fw::step(m, s, token, query, output); });
  if constexpr (fw::Chunkable<M>)
    each([&](auto& s) { fw::chunked_scan(m, s, inputs, queries, outputs); });
  if constexpr (fw::Differentiable<M>) {
    fw::Checkpoints<M> checkpoints;
    each([&](auto& s) { fw::scan(m, s, inputs, queries, outputs, checkpoints); });
    auto ds = fw::zero_gradient(m);
    fw::backward(m, state, inputs, queries, fw::view<fw::OutGradSequence<M>>(gradients.outputs), ds,
                 fw::view<fw::WriteGradSequence<M>>(gradients.inputs),
                 fw::view<fw::ReadGradSequence<M>>(gradients.queries));
  }
  state = each([&](auto& s) { fw::scan(m, s, inputs, queries, outputs); });
}

template <class M> void refuses_hostile_states(const M& m, const Paths& free_counters = {}) {
  INFO(M::name);
  fw::Random random(1);
  auto all = fw::testing::random_sequences(m, 3, random, true), gradients = all;
  auto state = fw::testing::random_state(m, 4, random, true);
  const auto use = [&](auto& s) { use_state(m, s, all, gradients); };
  hostile::try_counters(hostile::subject(m, state, use), free_counters);
}

template <class Sampling> auto continuous_memory() {
  using Basis = fw::RectangularBasis<float>;
  using M = fw::ContinuousMemory<float, fw::GibbsDensity<float>, Basis, Sampling>;
  typename M::Options o;
  o.d = 4;
  o.chunk = 2;
  o.samples = 5;
  return M(o, Basis(6), fw::GibbsDensity<float>(Basis(6)));
}

TEST_CASE("a cache refuses a number of tokens that no run of writes gives", "[hostile]") {
  using fw::WhenFull;
  const fw::KeyValueCache<float> slides({.key_size = 3}, {5}),
      refuses({.key_size = 3}, {9, WhenFull::refuse});
  refuses_hostile_states(slides, {"length"});
  refuses_hostile_states(refuses);
  refuses_hostile_states(fw::FeatureMapped<fw::KeyValueCache<float>, fw::EluPlusOne>(slides, 3),
                         {"length"});
  refuses_hostile_states(fw::FeatureMapped<fw::KeyValueCache<float>, fw::EluPlusOne>(refuses, 3));
  refuses_hostile_states(fw::CompressiveMemory<float>({4, 2, 2, 3, 3}), {"tokens"});
}

TEST_CASE("a continuous memory refuses a number of tokens that no run of writes gives",
          "[hostile]") {
  refuses_hostile_states(continuous_memory<fw::EvenSampling>(), {"tokens"});
  refuses_hostile_states(continuous_memory<fw::StickySampling>(), {"tokens"});
}

TEST_CASE("a deferred rule refuses more pending writes than it has room for", "[hostile]") {
  using Delta = fw::DeltaRule<float>;
  using Gated = fw::GatedDeltaRule<float, -1, -1, fw::KeyValueBetaVectorDecay>;
  refuses_hostile_states(fw::Deferred<Delta>(Delta({.key_size = 3})));
  refuses_hostile_states(fw::Deferred<Delta, 5, Eigen::bfloat16>(Delta({.key_size = 3})));
  refuses_hostile_states(fw::Deferred<Gated, 1>(Gated({.key_size = 3})));
  const fw::Deferred<Delta, 4> deferred(Delta({.key_size = 3}));
  auto state = fw::initial_state(deferred);
  state.pending = 4;
  CHECK_THROWS_WITH(deferred.flush(state),
                    "Deferred DeltaRule: pending is 4 in the state, expected 0 to 3");
}

}  // namespace
