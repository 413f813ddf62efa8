#include <fastweights/continuous/gibbs_density.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/memories/adaptors/deferred.hpp>
#include <fastweights/memories/adaptors/feature_mapped.hpp>
#include <fastweights/memories/attention/compressive_memory.hpp>
#include <fastweights/memories/attention/continuous_memory.hpp>
#include <fastweights/memories/attention/key_value_cache.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>

#include "support/catch.hpp"
#include "support/hostile_memories.hpp"

namespace {

using hostile::refuses_hostile_states;

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
  refuses_hostile_states(fw::Deferred<Delta, 5, std::int8_t>(Delta({.key_size = 3})));
  refuses_hostile_states(fw::Deferred<Gated, 1>(Gated({.key_size = 3})));
  refuses_hostile_states(fw::Deferred<Gated, 2, float, 3>(Gated({.key_size = 3})));
  const fw::Deferred<Delta, 4> deferred(Delta({.key_size = 3}));
  auto state = fw::initial_state(deferred);
  state.pending = 4;
  CHECK_THROWS_WITH(deferred.flush(state),
                    "Deferred DeltaRule: pending is 4 in the state, expected 0 to 3");
}

}  // namespace
