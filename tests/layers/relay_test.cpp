// A sequence in parts that are in different processes: here one process runs them one after
// another.

#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/layers/memory/summed_heads.hpp>
#include <fastweights/layers/models/language_model.hpp>
#include <fastweights/layers/models/pre_norm_block.hpp>
#include <fastweights/layers/norms/rms_norm.hpp>
#include <fastweights/layers/projections/causal_conv.hpp>
#include <fastweights/memories/recurrent/recurrent_delta_net.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>
#include <numeric>

#include "support/layer_checks.hpp"
#include "support/queue_relay.hpp"

using Catch::Matchers::ContainsSubstring;
using fw::Index;
using layer_checks::Matrix;
using layer_checks::random_matrix;
using layer_checks::relative_difference;

namespace {

// The tokens first … first + count − 1 of each of several concatenated sequences.
Matrix<double> part_of(const Matrix<double>& all, Index sequences, Index first, Index count) {
  const Index steps = all.cols() / sequences;
  Matrix<double> part(all.rows(), sequences * count);
  for (Index b = 0; b < sequences; ++b)
    part.middleCols(b * count, count) = all.middleCols(b * steps + first, count);
  return part;
}

// The outputs, the gradients and the last state of some sequences in parts of these lengths.
template <class Layer> struct Result {
  std::vector<Matrix<double>> y, dx;  // of the parts
  Layer grad;
  typename Layer::State state;

  Result(const Layer& layer, Index sequences, const Matrix<double>& x, const Matrix<double>& dy,
         const std::vector<Index>& lengths)
      : grad(fw::zero_gradient(layer)), state(fw::initial_state(layer, sequences)) {
    QueueRelay relay(lengths.size());
    std::vector<typename Layer::Trace> traces(lengths.size());
    std::vector<Matrix<double>> inputs;
    Index first = 0;
    for (std::size_t p = 0; p < lengths.size(); ++p) {
      inputs.push_back(part_of(x, sequences, first, lengths[p]));
      y.push_back(Matrix<double>::Constant(layer.outputs(), inputs[p].cols(), NAN));
      dx.push_back(Matrix<double>::Constant(layer.inputs(), inputs[p].cols(), NAN));
      first += lengths[p];
      relay.go_to(p);
      if (p > 0) state = fw::initial_state(layer, sequences);  // is received
      layer.forward(state, inputs[p], y[p], traces[p], fw::Pass::train.over(relay));
    }
    for (std::size_t p = lengths.size(); p-- > 0;) {
      first -= lengths[p];
      relay.go_to(p);
      layer.backward(inputs[p], traces[p], part_of(dy, sequences, first, lengths[p]), dx[p], grad);
    }
    CHECK(relay.is_empty());
  }
};

template <class Layer> void check_parts(Layer layer, Index sequences, std::vector<Index> lengths) {
  INFO(Layer::name << ", B " << sequences << ", " << lengths.size() << " parts");
  fw::Random random(3);
  layer_checks::randomise(layer, random);
  const Index steps = std::accumulate(lengths.begin(), lengths.end(), Index{0});
  const auto x = random_matrix(layer.inputs(), sequences * steps, random);
  const auto dy = random_matrix(layer.outputs(), sequences * steps, random);
  const Result<Layer> whole(layer, sequences, x, dy, {steps}),
      parts(layer, sequences, x, dy, lengths);
  Index first = 0;
  for (std::size_t p = 0; p < lengths.size(); ++p) {
    INFO("part " << p);
    CHECK(relative_difference(parts.y[p], part_of(whole.y[0], sequences, first, lengths[p])) <=
          1e-12);
    CHECK(relative_difference(parts.dx[p], part_of(whole.dx[0], sequences, first, lengths[p])) <=
          1e-12);
    first += lengths[p];
  }
  fw::for_each_parameter(
      [](const std::string& path, const auto& a, const auto& b) {
        INFO(path);
        CHECK(relative_difference(a, b) <= 1e-12);
      },
      parts.grad, whole.grad);
  fw::for_each_parameter(
      [](const std::string& path, const auto& a, const auto& b) {
        INFO(path);
        CHECK(relative_difference(a, b) <= 1e-12);
      },
      parts.state, whole.state);
}

template <class Layer> void check_layer(const Layer& layer) {
  for (Index sequences : {1, 3}) {
    check_parts(layer, sequences, {5, 9});
    check_parts(layer, sequences, {1, 1, 2, 1, 70});
  }
}

}  // namespace

TEST_CASE("Layers over parts of a sequence", "[layers][relay]") {
  using fw::FastWeightLayer;
  const fw::DeltaRule<double> delta({.key_size = 4, .value_size = 3});
  for (bool parallel : {false, true}) {
    check_layer(FastWeightLayer<fw::DeltaRule<double>, fw::L2Normalise, fw::RmsNorm<double>>(
        {.d_model = 6, .heads = 3, .parallel = parallel}, delta));
    check_layer(FastWeightLayer<fw::RecurrentDeltaNet<double>>(
        {.d_model = 6, .heads = 2, .parallel = parallel},
        fw::RecurrentDeltaNet<double>({.key_size = 4, .value_size = 3})));
    check_layer(fw::SummedHeads<fw::LinearAttention<double>>(
        {.d_model = 6, .heads = 2, .parallel = parallel},
        fw::LinearAttention<double>({.key_size = 4, .value_size = 3})));
  }
  check_layer(FastWeightLayer<fw::GatedDeltaRule<double>, fw::L2Normalise>(
      {.d_model = 6}, fw::GatedDeltaRule<double>({.key_size = 4, .value_size = 3})));
  for (Index kernel : {1, 2, 4}) check_layer(fw::CausalConv<double>(5, kernel));
}

TEST_CASE("Blocks and language models over parts of a sequence", "[layers][relay]") {
  using Mixer = fw::FastWeightLayer<fw::DeltaRule<double>, fw::L2Normalise>;
  using Block = fw::PreNormBlock<fw::RmsNorm<double>, Mixer, fw::CausalConv<double>>;
  using Model = fw::LanguageModel<Block>;
  const Block block(Mixer({.d_model = 6, .heads = 2}, fw::DeltaRule<double>({.key_size = 3})),
                    fw::CausalConv<double>(6, 4));
  check_layer(block);
  Model model(5, 3, block);
  fw::Random random(2);
  layer_checks::randomise(model, random);
  std::vector<int> ids;
  for (int i = 0; i < 20; ++i) ids.push_back(static_cast<int>(random.below(5)));
  const auto dlogits = random_matrix(5, 20, random);
  Matrix<double> whole(5, 20), parts(5, 20);
  Model::Trace trace, traces[2];
  auto state = model.initial_state();
  model.forward(state, ids, whole, trace, fw::Pass::train);
  Model expected = fw::zero_gradient(model), gradient = expected;
  model.backward(ids, trace, dlogits, expected);

  QueueRelay relay(2);
  const auto tokens = [&](Index p) { return fw::Symbols(ids).subspan(p == 0 ? 0 : 3, p ? 17 : 3); };
  const auto columns = [](auto& m, Index p) { return m.middleCols(p ? 3 : 0, p ? 17 : 3); };
  for (Index p : {0, 1}) {
    relay.go_to(static_cast<std::size_t>(p));
    state = model.initial_state();
    model.forward(state, tokens(p), columns(parts, p), traces[p], fw::Pass::train.over(relay));
  }
  for (Index p : {1, 0}) {
    relay.go_to(static_cast<std::size_t>(p));
    model.backward(tokens(p), traces[p], columns(dlogits, p), gradient);
  }
  CHECK(relay.is_empty());
  CHECK(relative_difference(parts, whole) <= 1e-12);
  fw::for_each_parameter(
      [](const std::string& path, const auto& a, const auto& b) {
        INFO(path);
        CHECK(relative_difference(a, b) <= 1e-12);
      },
      gradient, expected);
}

TEST_CASE("Layers that take whole sequences refuse parts", "[layers][relay]") {
  QueueRelay relay(2);
  const auto refuses = [&](const auto& layer) {
    using Layer = std::decay_t<decltype(layer)>;
    const Matrix<double> x = Matrix<double>::Ones(layer.inputs(), 4);
    Matrix<double> y(layer.outputs(), 4);
    auto state = layer.initial_state();
    typename Layer::Trace trace;
    CHECK_THROWS_WITH(
        layer.forward(state, x, y, trace, fw::Pass::infer.over(relay)),
        std::string(Layer::name) + ": a part of a sequence, this layer takes whole sequences");
  };
  using Heads = fw::SummedHeads<fw::LinearAttention<double>>;
  refuses(Heads({.d_model = 6, .causal = false},
                fw::LinearAttention<double>({.key_size = 4, .value_size = 3})));
}
