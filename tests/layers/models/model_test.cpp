#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/layers/memory/fast_weight_layer.hpp>
#include <fastweights/layers/models/language_model.hpp>
#include <fastweights/layers/models/pre_norm_block.hpp>
#include <fastweights/layers/norms/layer_norm.hpp>
#include <fastweights/layers/projections/feed_forward.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/training/losses.hpp>

#include "support/layer_checks.hpp"

using Catch::Matchers::ContainsSubstring;
using fw::Index;
using layer_checks::check_layer;
using layer_checks::Complex;
using layer_checks::parameter_names;

namespace {

template <class S> using Mixer = fw::FastWeightLayer<fw::DeltaRule<S>, fw::L2Normalise>;
template <class S> using Block = fw::PreNormBlock<fw::LayerNorm<S>, Mixer<S>, fw::FeedForward<S>>;
template <class S> using Model = fw::LanguageModel<Block<S>>;

template <class S> Block<S> block(Index d) {
  return Block<S>(
      Mixer<S>({.d_model = d, .heads = 2}, fw::DeltaRule<S>({.key_size = 4, .value_size = 3})),
      fw::FeedForward<S>(d, 2 * d));
}

const std::vector<int> text{3, 1, 4, 1, 5, 0, 2, 6, 5, 3, 5};
const std::vector<int> next{1, 4, 1, 5, 0, 2, 6, 5, 3, 5, 4};
const Index steps = static_cast<Index>(text.size());

Model<double> random_model() {
  Model<double> model(7, 2, block<double>(5));
  fw::Random random(6);
  layer_checks::randomise(model, random);
  return model;
}

}  // namespace

TEST_CASE("PreNormBlock: gradients, streaming, refusals", "[layers]") {
  for (Index d : {3, 8}) check_layer(block<double>(d), block<Complex>(d), {1, 9});
  CHECK(parameter_names(block<double>(3)) ==
        "norm1.weight\nnorm1.bias\nmixer.write.key.weight\nmixer.write.value.weight\n"
        "mixer.write.beta.weight\nmixer.read.query.weight\nmixer.output.weight\n"
        "norm2.weight\nnorm2.bias\n"
        "ffn.up.weight\nffn.up.bias\nffn.down.weight\nffn.down.bias\n");
  CHECK_THROWS_WITH(
      Block<double>(Mixer<double>({.d_model = 4}, fw::DeltaRule<double>({.key_size = 2})),
                    fw::FeedForward<double>(5, 6)),
      "PreNormBlock: the ffn's input has 5 rows, the mixer expects 4");
}

TEST_CASE("LanguageModel: gradients of the cross-entropy", "[layers]") {
  const Model<double> model = random_model();
  Eigen::MatrixXd logits(7, steps), dlogits(7, steps);
  Model<double>::Trace trace;
  auto state = model.initial_state();
  model.forward(state, text, logits, trace, fw::Pass::train);
  fw::cross_entropy(logits, next, dlogits);
  Model<double> grad = model;
  fw::set_zero_parameters(grad);
  model.backward(text, trace, dlogits, grad);

  Model<Complex> twin(7, 2, block<Complex>(5));
  layer_checks::copy_parameters(model, twin);
  Model<Complex>::Trace ztrace;
  Eigen::MatrixXcd zlogits(7, steps), zdlogits(7, steps);
  const auto loss = [&]() -> Complex {
    auto zstate = twin.initial_state();
    twin.forward(zstate, text, zlogits, ztrace);
    return fw::cross_entropy(zlogits, next, zdlogits);
  };
  fw::for_each_parameter(
      [&](const std::string& path, auto& z, const auto& g) {
        INFO(path);
        CHECK(layer_checks::gradient_error(z, g, loss) <= 1e-10);
      },
      twin, grad);
}

TEST_CASE("LanguageModel: streamed logits equal those of one pass", "[layers]") {
  const Model<double> model = random_model();
  Eigen::MatrixXd whole(7, steps), parts(7, steps);
  Model<double>::Trace trace;
  auto state = model.initial_state();
  model.forward(state, text, whole, trace);
  state = model.initial_state();
  for (Index t = 0; t < steps; ++t) {
    const std::size_t at = static_cast<std::size_t>(t);
    model.forward(state, fw::Symbols(text).subspan(at, 1), parts.col(t), trace);
  }
  CHECK(layer_checks::relative_difference(parts, whole) <= 1e-12);
}

TEST_CASE("LanguageModel: names, initialisation, refusals", "[layers]") {
  Model<double> model(7, 2, block<double>(5));
  const std::string names = parameter_names(model);
  CHECK_THAT(names, ContainsSubstring("embedding.weight\nblocks.0.norm1.weight\n"));
  CHECK_THAT(names, ContainsSubstring("blocks.1.mixer.write.beta.weight\n"));
  CHECK_THAT(names, ContainsSubstring("norm.bias\nhead.weight\nhead.bias\n"));

  fw::Random random(1);
  fw::initialise(model, random);
  CHECK((model.blocks[0].norm1.weight.array() == 1).all());
  CHECK(model.blocks[0].mixer.write.key.weight != model.blocks[1].mixer.write.key.weight);
  CHECK(model.embedding.weight.cwiseAbs().maxCoeff() > 0);
  CHECK(model.blocks[1].ffn.down.bias.cwiseAbs().maxCoeff() > 0);

  CHECK_THROWS_WITH(Model<double>(7, -1, block<double>(5)),
                    "LanguageModel: layers is -1, expected at least 0");
  Model<double>::Trace trace;
  auto state = model.initial_state();
  Eigen::MatrixXd logits = Eigen::MatrixXd::Ones(7, steps), small(6, steps);
  const std::vector<int> unknown{0, 7}, none;
  CHECK_THROWS_WITH(model.forward(state, text, small, trace),
                    "LanguageModel: logits has 6 rows, the layer expects 7");
  CHECK_THROWS_WITH(model.forward(state, unknown, logits.leftCols(2), trace),
                    "LanguageModel: token 1 is 7, expected 0 to 6");
  CHECK_THROWS_WITH(model.forward(state, none, logits.leftCols(0), trace),
                    "LanguageModel: ids has no tokens, the layer expects at least 1");
  state.blocks.pop_back();
  CHECK_THROWS_WITH(model.forward(state, text, logits, trace),
                    "LanguageModel: the state has 1 blocks, the model expects 2");
  CHECK((logits.array() == 1).all());

  state = model.initial_state();
  model.forward(state, text, logits, trace, fw::Pass::train);
  Model<double> shallow(7, 1, block<double>(5));
  CHECK_THROWS_WITH(model.backward(text, trace, logits, shallow),
                    ContainsSubstring("LanguageModel: the parameters of grad differ"));
}
