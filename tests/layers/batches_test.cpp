#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/layers/attention/relative_attention.hpp>
#include <fastweights/layers/memory/fast_weight_layer.hpp>
#include <fastweights/layers/memory/summed_heads.hpp>
#include <fastweights/layers/models/language_model.hpp>
#include <fastweights/layers/models/pre_norm_block.hpp>
#include <fastweights/layers/norms/rms_norm.hpp>
#include <fastweights/layers/projections/causal_conv.hpp>
#include <fastweights/layers/projections/feed_forward.hpp>
#include <fastweights/memories/recurrent/recurrent_delta_net.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>

#include "support/layer_checks.hpp"

using fw::Index;
using layer_checks::Matrix;
using layer_checks::random_matrix;
using layer_checks::relative_difference;

namespace {

// Two forward passes over several sequences at once, the second a train pass, and its gradients.
template <class Layer> struct Passes {
  Matrix<double> first_y, y, dx;
  Layer grad;
  typename Layer::State state;

  Passes(const Layer& layer, Index sequences, const Matrix<double>& first, const Matrix<double>& x,
         const Matrix<double>& dy)
      : first_y(Matrix<double>::Constant(layer.outputs(), first.cols(), NAN)),
        y(Matrix<double>::Constant(layer.outputs(), x.cols(), NAN)),
        dx(Matrix<double>::Constant(layer.inputs(), x.cols(), NAN)),
        grad(layer),
        state(layer.initial_state(sequences)) {
    typename Layer::Trace trace;
    fw::set_zero_parameters(grad);
    layer.forward(state, first, first_y, trace);
    layer.forward(state, x, y, trace, fw::Pass::train);
    layer.backward(x, trace, dy, dx, grad);
  }
};

// Sequence b of several concatenated sequences.
Matrix<double> one(const Matrix<double>& all, Index b, Index sequences) {
  const Index steps = all.cols() / sequences;
  return all.middleCols(b * steps, steps);
}

// Compares sequence b of a state with the state of one sequence. The sequences of a state are in
// its columns or its heads.
template <class State>
void check_state(const State& at_once, const State& alone, Index b, Index sequences) {
  if constexpr (requires { alone.mixer; })
    return check_state(at_once.mixer, alone.mixer, b, sequences);
  const auto compare = [](const std::string& path, const auto& part, const auto& each) {
    INFO(path);
    CHECK(relative_difference(part, each) <= 1e-13);
  };
  if constexpr (requires { alone.heads; }) {
    const auto heads = static_cast<std::ptrdiff_t>(alone.heads.size());
    const auto first = at_once.heads.begin() + b * heads;
    const State part{{first, first + heads}};
    fw::for_each_parameter(compare, part, alone);
  } else {
    fw::for_each_parameter([&](const std::string& path, const auto& all,
                               const auto& each) { compare(path, one(all, b, sequences), each); },
                           at_once, alone);
  }
}

template <class Layer> void check_batch(Layer layer, Index sequences, Index steps) {
  INFO(Layer::name << ", R " << layer.outputs() << ", B " << sequences << ", T " << steps);
  fw::Random random(3);
  fw::initialise(layer, random);
  const auto first = random_matrix(layer.inputs(), sequences, random);
  const auto x = random_matrix(layer.inputs(), sequences * steps, random);
  const auto dy = random_matrix(layer.outputs(), sequences * steps, random);
  const Passes at_once(layer, sequences, first, x, dy);
  Layer sum = layer;
  fw::set_zero_parameters(sum);
  for (Index b = 0; b < sequences; ++b) {
    const Passes alone(layer, 1, one(first, b, sequences), one(x, b, sequences),
                       one(dy, b, sequences));
    CHECK(relative_difference(one(at_once.first_y, b, sequences), alone.first_y) <= 1e-13);
    CHECK(relative_difference(one(at_once.y, b, sequences), alone.y) <= 1e-13);
    CHECK((one(at_once.dx, b, sequences) - alone.dx).norm() <= 1e-12 * at_once.dx.norm());
    check_state(at_once.state, alone.state, b, sequences);
    fw::add_parameters(sum, alone.grad);
  }
  fw::for_each_parameter(
      [](const std::string& path, const auto& all, const auto& each) {
        INFO(path);
        CHECK((all - each).norm() <= 1e-12 * (1 + each.norm()));
      },
      at_once.grad, sum);
}

template <class Layer> void refuses_unequal_sequences(const Layer& layer) {
  INFO(Layer::name);
  auto state = layer.initial_state(2);
  typename Layer::Trace trace;
  const Matrix<double> x = Matrix<double>::Ones(layer.inputs(), 7);
  Matrix<double> y = Matrix<double>::Ones(layer.outputs(), 7);
  CHECK_THROWS_WITH(layer.forward(state, x, y, trace),
                    Catch::Matchers::ContainsSubstring(
                        "x has 7 columns, a state of 2 sequences expects a multiple of 2"));
  CHECK((y.array() == 1).all());
  CHECK(layer_checks::same_parameters(state, layer.initial_state(2)));
  CHECK_THROWS_WITH(layer.initial_state(0),
                    Catch::Matchers::ContainsSubstring("sequences is 0, expected at least 1"));
}

}  // namespace

TEST_CASE("CausalConv: several sequences at once give the results of each alone", "[layers]") {
  for (Index kernel : {1, 2, 4})
    for (Index sequences : {1, 2, 5})
      for (Index steps : {1, 2, 9}) {
        INFO("K " << kernel);
        check_batch(fw::CausalConv<double>(3, kernel), sequences, steps);
      }
}

TEST_CASE("FastWeightLayer: several sequences at once give the results of each alone", "[layers]") {
  using Delta = fw::FastWeightLayer<fw::DeltaRule<double>, fw::L2Normalise, fw::RmsNorm<double>>;
  using Net = fw::FastWeightLayer<fw::RecurrentDeltaNet<double>>;  // has slow weights of its own
  for (Index sequences : {1, 2, 5})
    for (Index steps : {1, 2, 9})
      for (bool parallel : {false, true}) {
        const fw::FastWeightOptions options{
            .d_model = 6, .heads = 2, .scale = 0.5, .bias = true, .parallel = parallel};
        for (Index d : {1, 3, 17})
          check_batch(Delta(options, fw::DeltaRule<double>({.key_size = d})), sequences, steps);
        check_batch(Net(options, fw::RecurrentDeltaNet<double>({.key_size = 4, .value_size = 3})),
                    sequences, steps);
      }
}

TEST_CASE("SummedHeads: several sequences at once give the results of each alone", "[layers]") {
  using Sum = fw::LinearAttention<double>;
  for (Index sequences : {1, 2, 5})
    for (Index steps : {1, 2, 9})
      for (bool causal : {false, true})
        for (bool parallel : {false, true})
          check_batch(
              fw::SummedHeads<Sum>(
                  {.d_model = 6, .heads = 2, .causal = causal, .bias = true, .parallel = parallel},
                  Sum({.key_size = 3, .value_size = 4})),
              sequences, steps);
}

using Delta = fw::FastWeightLayer<fw::DeltaRule<double>, fw::L2Normalise>;
template <class Mixer>
using Block = fw::PreNormBlock<fw::RmsNorm<double>, Mixer, fw::FeedForward<double>>;

Block<Delta> delta_block() {
  return {Delta({.d_model = 6, .heads = 2}, fw::DeltaRule<double>({.key_size = 3})), {6, 10}};
}

TEST_CASE("PreNormBlock: several sequences at once give the results of each alone", "[layers]") {
  for (Index sequences : {1, 2, 5})
    for (Index steps : {1, 2, 9}) check_batch(delta_block(), sequences, steps);
}

TEST_CASE("LanguageModel: several sequences at once give the results of each alone", "[layers]") {
  fw::LanguageModel<Block<Delta>> model(7, 2, delta_block());
  fw::Random random(1);
  fw::initialise(model, random);
  constexpr Index sequences = 3, steps = 5;
  std::vector<int> ids(sequences * steps);
  for (int& id : ids) id = static_cast<int>(random.below(7));
  const auto dlogits = random_matrix(7, sequences * steps, random);
  const auto run = [&](std::span<const int> symbols, Index count, const Matrix<double>& dy,
                       auto& grad) {
    auto state = model.initial_state(count);
    typename decltype(model)::Trace trace;
    Matrix<double> logits(7, Index(symbols.size()));
    model.forward(state, symbols, logits, trace, fw::Pass::train);
    model.backward(symbols, trace, dy, grad);
    return logits;
  };
  auto grad = fw::zero_gradient(model), sum = grad;
  const Matrix<double> logits = run(ids, sequences, dlogits, grad);
  for (Index b = 0; b < sequences; ++b) {
    const auto own = std::span<const int>(ids).subspan(std::size_t(b * steps), steps);
    const Matrix<double> alone = run(own, 1, one(dlogits, b, sequences), sum);
    CHECK(relative_difference(one(logits, b, sequences), alone) <= 1e-13);
  }
  fw::for_each_parameter(
      [](const std::string& path, const auto& all, const auto& each) {
        INFO(path);
        CHECK((all - each).norm() <= 1e-12 * (1 + each.norm()));
      },
      grad, sum);
}

TEST_CASE("LanguageModel: blocks whose states differ in the number of sequences are refused",
          "[layers]") {
  const fw::LanguageModel<Block<Delta>> model(7, 2, delta_block());
  auto state = model.initial_state(4);
  state.blocks[1] = model.blocks[1].initial_state(1);
  decltype(model)::Trace trace;
  const std::vector<int> ids{1, 2, 3, 4};
  Matrix<double> logits(7, 4);
  CHECK_THROWS_WITH(model.forward(state, ids, logits, trace),
                    "LanguageModel: block 1 of the state has 1 sequences, block 0 expects 4");
}

TEST_CASE("Layers: one that takes a single sequence says so", "[layers]") {
  using Attention = fw::RelativeAttention<double>;
  const Attention attention({.d_model = 4, .heads = 2, .window = 3});
  CHECK_THROWS_WITH(fw::initial_state(attention, 2),
                    "RelativeAttention: 2 sequences, this layer takes one at a time");
  const Block<Attention> block(attention, {4, 5});
  CHECK_THROWS_WITH(block.initial_state(2),
                    "RelativeAttention: 2 sequences, this layer takes one at a time");
}

TEST_CASE("Layers: sequences of unequal length are refused", "[layers]") {
  refuses_unequal_sequences(fw::CausalConv<double>(3, 2));
  refuses_unequal_sequences(fw::FastWeightLayer<fw::DeltaRule<double>, fw::L2Normalise>(
      {.d_model = 3, .heads = 2}, fw::DeltaRule<double>({.key_size = 3})));
}
