#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/layers/memory/fast_weight_layer.hpp>
#include <fastweights/layers/memory/summed_heads.hpp>
#include <fastweights/memories/recurrent/recurrent_delta_net.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>

#include "support/layer_checks.hpp"

using layer_checks::check_layer;
using layer_checks::Complex;
using layer_checks::Matrix;
using layer_checks::parameter_names;

TEST_CASE("FastWeightLayer around the recurrent delta net learns its slow weights",
          "[layers][recurrent]") {
  const fw::FastWeightOptions options{.d_model = 5, .heads = 2, .scale = 0.5, .bias = true};
  using Rule = fw::RecurrentDeltaNet<double>;
  using Twin = fw::RecurrentDeltaNet<Complex>;
  check_layer(fw::FastWeightLayer<Rule>(options, Rule({3, 4})),
              fw::FastWeightLayer<Twin>(options, Twin({3, 4})), {1, 9});
  fw::FastWeightLayer<fw::RecurrentDeltaNet<double>> layer(
      {.d_model = 6, .heads = 2}, fw::RecurrentDeltaNet<double>({.key_size = 4, .value_size = 3}));
  CHECK(parameter_names(layer).find("slow.1.key\nslow.1.query\nslow.1.value\nslow.1.beta\n") !=
        std::string::npos);
  fw::Random random(1);
  fw::initialise(layer, random);
  CHECK(layer.slow[1].key.cwiseAbs().maxCoeff() > 0.1);
  using Mapped = fw::FastWeightLayer<fw::RecurrentDeltaNet<double>, fw::EluPlusOne>;
  CHECK_THROWS_WITH(
      Mapped({.d_model = 6}, fw::RecurrentDeltaNet<double>({.key_size = 4, .value_size = 3})),
      "FastWeightLayer: the feature map is EluPlusOne, expected IdentityMap, as "
      "RecurrentDeltaNet takes no keys to map");
}

// A trace that another layer has used gives the same result as a new one.
template <class Layer> void check_trace_reuse(const Layer& first, const Layer& second) {
  typename Layer::Trace used, unused;
  const auto gradient_of = [](const Layer& layer, typename Layer::Trace& trace) {
    fw::Random random(4);
    Layer random_layer = layer, grad = layer;
    layer_checks::randomise(random_layer, random);
    const auto x = layer_checks::random_matrix(random_layer.inputs(), 5, random);
    Matrix<double> y(random_layer.outputs(), 5), dx(random_layer.inputs(), 5);
    auto state = random_layer.initial_state();
    random_layer.forward(state, x, y, trace, fw::Pass::train);
    random_layer.backward(x, trace, y, dx, grad);
    return dx;
  };
  gradient_of(first, used);
  CHECK(gradient_of(second, used) == gradient_of(second, unused));
}

TEST_CASE("Layers around memories: a trace can be reused by a layer of another size", "[layers]") {
  using Delta = fw::DeltaRule<double>;
  const Delta small({.key_size = 3, .value_size = 2}), large({.key_size = 5, .value_size = 4});
  using Own = fw::FastWeightLayer<Delta, fw::L2Normalise>;
  check_trace_reuse(Own({.d_model = 6, .heads = 2}, small), Own({.d_model = 6, .heads = 2}, large));
  using Summed = fw::SummedHeads<Delta>;
  const fw::SummedHeadsOptions options{.d_model = 6, .heads = 2, .allow_unstable = true};
  check_trace_reuse(Summed(options, large), Summed(options, small));
}
