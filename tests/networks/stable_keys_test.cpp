// Layers refuse a delta rule whose keys nothing bounds.

#include <fastweights/any_memory/table/deltas.hpp>
#include <fastweights/any_memory/table/fast_nets.hpp>
#include <fastweights/any_memory/table/gated_deltas.hpp>
#include <fastweights/any_memory/table/sums.hpp>
#include <fastweights/any_memory/table/windows.hpp>
#include <fastweights/core/finite.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/feature_maps/softmax.hpp>
#include <fastweights/feature_maps/tanh.hpp>
#include <fastweights/layers/fast_weight_layer.hpp>
#include <fastweights/layers/summed_heads.hpp>
#include <fastweights/memories/adaptors/deferred.hpp>
#include <fastweights/memories/adaptors/feature_mapped.hpp>

#include "support/catch.hpp"

namespace {

using Catch::Matchers::ContainsSubstring;
using fw::networks::Builder;

const fw::DeltaRule<float> delta({.key_size = 4});
const fw::DeltaRnn<double> rnn({.key_size = 4, .value_size = 3});

// Builds a layer of two heads around a memory.
template <class M, class Map = fw::IdentityMap>
void build(const M& memory, Map map = {},
           const fw::networks::FastWeightsOptions& o = {.heads = 2}) {
  Builder<typename M::Scalar> net;
  fast_weights(net.input(6), "mixer", memory, o, map);
}

template <class M, class Map = fw::IdentityMap>
void refused(const M& memory, const std::string& what, Map map = {}) {
  CHECK_THROWS_AS(build(memory, map), std::invalid_argument);
  CHECK_THROWS_WITH(build(memory, map), ContainsSubstring("mixer: " + what));
}

TEST_CASE("fast weights: a delta rule whose keys nothing bounds is refused", "[networks]") {
  refused(delta,
          "DeltaRule is unstable with keys of IdentityMap: beta times the squared norm of key is "
          "4, expected at most 2: normalise the keys. Use a feature map that bounds the length of "
          "keys, such as fw::L2Normalise");
  refused(fw::GatedDeltaRule<double>({.key_size = 4}),
          "GatedDeltaRule is unstable with keys of IdentityMap");
  refused(delta, "DeltaRule is unstable with keys of EluPlusOne", fw::EluPlusOne());
  refused(delta, "DeltaRule is unstable with keys of TanhMap", fw::TanhMap());
  refused(delta, "DeltaRule is unstable with keys of SumNormalise", fw::SumNormalise());
  refused(fw::Deferred(delta), "Deferred DeltaRule is unstable");
  refused(rnn, "DeltaRnn");
  refused(fw::DeltaLstm<double>({.key_size = 4, .value_size = 3}), "DeltaLstm");
}

TEST_CASE("fast weights: bounded keys, memories that need none, and the caller's own decision",
          "[networks]") {
  using Sums = fw::SumNormalised<fw::EluPlusOne>;
  CHECK_NOTHROW(build(delta, fw::L2Normalise()));
  CHECK_NOTHROW(build(delta, fw::SoftmaxMap()));
  CHECK_NOTHROW(build(delta, Sums()));
  CHECK_NOTHROW(build(rnn, Sums()));
  const fw::FeatureMapped<fw::DeltaRule<float>, fw::L2Normalise> mapped(delta, 4);
  CHECK_NOTHROW(build(mapped));
  CHECK_NOTHROW(build(fw::LinearAttention<float>({.key_size = 4})));
  CHECK_NOTHROW(build(fw::FastWeightMemory<float>({.key_size = 4})));
  CHECK_NOTHROW(build(delta, fw::IdentityMap(), {.allow_unstable = true}));
  for (const bool causal : {true, false}) {
    Builder<float> net;
    const auto x = net.input(6);
    CHECK_NOTHROW(summed_heads(x, "a", delta, {.causal = causal, .allow_unstable = true}));
    CHECK_NOTHROW(summed_heads(x, "b", mapped, {.causal = causal}));
  }
}

TEST_CASE("FastWeightLayer: an unstable rule is refused by name", "[networks]") {
  using Layer = fw::FastWeightLayer<fw::DeltaRule<float>>;
  CHECK_THROWS_WITH(Layer({.d_model = 6}, delta),
                    ContainsSubstring("FastWeightLayer: DeltaRule is unstable with keys of"));
  CHECK_NOTHROW(Layer({.d_model = 6, .allow_unstable = true}, delta));
}

TEST_CASE("a delta rule with unit keys is finite after 20,000 tokens as initialised",
          "[networks]") {
  fw::FastWeightLayer layer({.d_model = 16, .heads = 2}, fw::DeltaRule<float>({.key_size = 8}),
                            fw::L2Normalise());
  fw::Random random(1);
  fw::initialise(layer, random);
  auto state = layer.initial_state();
  fw::networks::Network<float>::Trace trace;
  Eigen::MatrixXf x(16, 1000), y(16, 1000);
  for (int part = 0; part < 20; ++part) {
    random.fill(x, 3);
    layer.forward(state, x, y, trace);
  }
  CHECK(fw::all_finite(y));
  CHECK(fw::all_finite(state));
}

}  // namespace
