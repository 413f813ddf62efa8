#include <fastweights/core/finite.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/feature_maps/softmax.hpp>
#include <fastweights/feature_maps/tanh.hpp>
#include <fastweights/layers/memory/fast_weight_layer.hpp>
#include <fastweights/layers/memory/summed_heads.hpp>
#include <fastweights/memories/adaptors/deferred.hpp>
#include <fastweights/memories/adaptors/feature_mapped.hpp>
#include <fastweights/memories/recurrent/delta_lstm.hpp>
#include <fastweights/memories/recurrent/delta_rnn.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/fast_weight_memory.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>

#include "support/catch.hpp"

using Catch::Matchers::ContainsSubstring;

TEST_CASE("FastWeightLayer, SummedHeads: a delta rule whose keys nothing bounds is refused",
          "[layers]") {
  using fw::FastWeightLayer;
  const fw::FastWeightOptions options{.d_model = 6, .heads = 2};
  const fw::DeltaRule<float> delta({.key_size = 4});
  const fw::GatedDeltaRule<double> gated({.key_size = 4});
  const std::string remedy =
      ", expected at most 2: normalise the keys. Use a map that bounds the length of keys, such as "
      "FastWeightLayer<Memory, fw::L2Normalise>, or set FastWeightOptions::allow_unstable";
  const auto refused = [](const std::string& what) {
    return ContainsSubstring("FastWeightLayer: " + what);
  };
  CHECK_THROWS_WITH(FastWeightLayer<fw::DeltaRule<float>>(options, delta),
                    ContainsSubstring("beta times the squared norm of key is 4" + remedy));
  CHECK_THROWS_WITH(FastWeightLayer<fw::DeltaRule<float>>(options, delta),
                    refused("DeltaRule is unstable with keys of IdentityMap"));
  CHECK_THROWS_WITH(FastWeightLayer<fw::GatedDeltaRule<double>>(options, gated),
                    refused("GatedDeltaRule is unstable with keys of IdentityMap"));
  CHECK_THROWS_WITH((FastWeightLayer<fw::DeltaRule<float>, fw::EluPlusOne>(options, delta)),
                    refused("DeltaRule is unstable with keys of EluPlusOne"));
  CHECK_THROWS_WITH((FastWeightLayer<fw::DeltaRule<float>, fw::TanhMap>(options, delta)),
                    refused("DeltaRule is unstable with keys of TanhMap"));
  CHECK_THROWS_WITH((FastWeightLayer<fw::DeltaRule<float>, fw::SumNormalise>(options, delta)),
                    refused("DeltaRule is unstable with keys of SumNormalise"));
  CHECK_THROWS_WITH(
      FastWeightLayer<fw::Deferred<fw::DeltaRule<float>>>(options, fw::Deferred(delta)),
      refused("Deferred DeltaRule is unstable"));
  const fw::DeltaRnn<double> rnn({.key_size = 4, .value_size = 3});
  const fw::DeltaLstm<double> lstm({.key_size = 4, .value_size = 3});
  CHECK_THROWS_WITH(FastWeightLayer<fw::DeltaRnn<double>>(options, rnn), refused("DeltaRnn"));
  CHECK_THROWS_WITH(FastWeightLayer<fw::DeltaLstm<double>>(options, lstm), refused("DeltaLstm"));
  using Summed = fw::SummedHeads<fw::DeltaRule<float>>;
  CHECK_THROWS_WITH(Summed({.d_model = 6}, delta),
                    ContainsSubstring("SummedHeads: DeltaRule is unstable") &&
                        ContainsSubstring("Use a memory that normalises its keys, such as "
                                          "fw::FeatureMapped<Memory, fw::L2Normalise>, or set "
                                          "SummedHeadsOptions::allow_unstable"));

  // Bounded keys, memories that need none, and the caller's own decision.
  FastWeightLayer<fw::DeltaRule<float>, fw::L2Normalise>(options, delta);
  FastWeightLayer<fw::DeltaRule<float>, fw::SoftmaxMap>(options, delta);
  FastWeightLayer<fw::DeltaRule<float>, fw::SumNormalised<fw::EluPlusOne>>(options, delta);
  FastWeightLayer<fw::DeltaRnn<double>, fw::SumNormalised<fw::EluPlusOne>>(options, rnn);
  using Mapped = fw::FeatureMapped<fw::DeltaRule<float>, fw::L2Normalise>;
  FastWeightLayer<Mapped>(options, Mapped(delta, 4));
  fw::SummedHeads<Mapped>({.d_model = 6}, Mapped(delta, 4));
  FastWeightLayer<fw::LinearAttention<float>>(options, fw::LinearAttention<float>({.key_size = 4}));
  FastWeightLayer<fw::FastWeightMemory<float>>(options,
                                               fw::FastWeightMemory<float>({.key_size = 4}));
  FastWeightLayer<fw::DeltaRule<float>>({.d_model = 6, .allow_unstable = true}, delta);
  Summed({.d_model = 6, .allow_unstable = true}, delta);
}

TEST_CASE(
    "FastWeightLayer: a delta rule with unit keys is finite after 20,000 tokens as "
    "initialised",
    "[layers]") {
  using Layer = fw::FastWeightLayer<fw::DeltaRule<float>, fw::L2Normalise>;
  Layer layer({.d_model = 16, .heads = 2}, fw::DeltaRule<float>({.key_size = 8}));
  fw::Random random(1);
  fw::initialise(layer, random);
  auto state = layer.initial_state();
  Layer::Trace trace;
  Eigen::MatrixXf x(16, 1000), y(16, 1000);
  for (int part = 0; part < 20; ++part) {
    random.fill(x, 3);
    layer.forward(state, x, y, trace);
  }
  CHECK(fw::all_finite(y));
  CHECK(fw::all_finite(state));
}
