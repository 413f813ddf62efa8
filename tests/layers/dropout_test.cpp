#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/layers/memory/fast_weight_layer.hpp>
#include <fastweights/layers/models/language_model.hpp>
#include <fastweights/layers/models/pre_norm_block.hpp>
#include <fastweights/layers/norms/rms_norm.hpp>
#include <fastweights/layers/projections/dropout.hpp>
#include <fastweights/layers/projections/feed_forward.hpp>
#include <fastweights/layers/projections/identity_layer.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>

#include "support/layer_checks.hpp"

using fw::Index;
using layer_checks::Matrix;
using layer_checks::random_matrix;

namespace {

using Identity = fw::Dropout<fw::IdentityLayer<double>>;

Matrix<double> ones_through(const Identity& layer, Identity::State& state, Index tokens) {
  const Matrix<double> x = Matrix<double>::Ones(layer.inputs(), tokens);
  Matrix<double> y(layer.outputs(), tokens);
  Identity::Trace trace;
  layer.forward(state, x, y, trace, fw::Pass::train);
  return y;
}

TEST_CASE("Dropout: sets the stated share to 0 and keeps the mean", "[layers]") {
  for (const double rate : {0.0, 0.1, 0.5, 0.9}) {
    const Identity layer(fw::IdentityLayer<double>(50), rate);
    auto state = layer.initial_state();
    fw::seed_dropout(state, 7);
    const auto y = ones_through(layer, state, 400);
    const double dropped = double((y.array() == 0).count()) / double(y.size());
    const double kept = 1 / (1 - rate);
    CHECK(((y.array() == 0) || (y.array() == kept)).all());
    CHECK(std::abs(dropped - rate) <= 5 * std::sqrt(rate * (1 - rate) / double(y.size())));
  }
}

TEST_CASE("Dropout: an infer pass changes nothing", "[layers]") {
  const Identity layer(fw::IdentityLayer<double>(5), 0.5);
  auto state = layer.initial_state();
  Identity::Trace trace;
  fw::Random random(1);
  const auto x = random_matrix(5, 9, random);
  Matrix<double> y(5, 9);
  layer.forward(state, x, y, trace);
  CHECK(y == x);
}

struct Two {
  Identity::State a, b;
  static constexpr auto names = fw::names("a", "b");
};

TEST_CASE("Dropout: the same seed draws the same, in any split; other seeds and layers do not",
          "[layers]") {
  const Identity layer(fw::IdentityLayer<double>(8), 0.5);
  const auto draw = [&](std::uint64_t seed, Index first) {
    auto state = layer.initial_state();
    fw::seed_dropout(state, seed);
    Matrix<double> y(8, 20);
    y.leftCols(first) = ones_through(layer, state, first);
    y.rightCols(20 - first) = ones_through(layer, state, 20 - first);
    return y;
  };
  CHECK(draw(1, 20 - 1) == draw(1, 4));
  CHECK(draw(1, 4) != draw(2, 4));
  Two two{layer.initial_state(), layer.initial_state()};
  fw::seed_dropout(two, 1);
  CHECK(two.a.dropout_seed != two.b.dropout_seed);
  auto state = layer.initial_state();
  fw::seed_dropout(state, 1);
  const auto once = ones_through(layer, state, 5);
  CHECK(ones_through(layer, state, 5) != once);
  fw::seed_dropout(state, 1);
  CHECK(ones_through(layer, state, 5) == once);
}

using Delta = fw::FastWeightLayer<fw::DeltaRule<double>, fw::L2Normalise>;
using Block =
    fw::PreNormBlock<fw::RmsNorm<double>, fw::Dropout<Delta>, fw::Dropout<fw::FeedForward<double>>>;
using Model = fw::LanguageModel<Block>;

TEST_CASE("Dropout: gradients of a model by differences", "[layers]") {
  Model model(
      5, 2,
      Block(fw::Dropout(Delta({.d_model = 6, .heads = 2}, fw::DeltaRule<double>({.key_size = 3})),
                        0.3),
            fw::Dropout(fw::FeedForward<double>(6, 8), 0.3)));
  fw::Random random(1);
  fw::initialise(model, random);
  const std::vector<int> ids{0, 1, 2, 3, 4, 0, 3, 1};
  const auto weights = random_matrix(5, 8, random);
  const auto loss = [&](const Model& m, Model* grad) {
    auto state = m.initial_state(2);
    fw::seed_dropout(state, 3);
    Model::Trace trace;
    Matrix<double> logits(5, 8);
    m.forward(state, ids, logits, trace, fw::Pass::train);
    if (grad != nullptr) m.backward(ids, trace, weights, *grad);
    return logits.cwiseProduct(weights).sum();
  };
  Model grad = fw::zero_gradient(model);
  loss(model, &grad);
  double worst = 0, largest = 0;
  fw::for_each_parameter(
      [&](const std::string&, auto& p, auto& g) {
        for (Index i = 0; i < p.size(); i += 3) {
          const double kept = p.data()[i], h = 1e-6;
          p.data()[i] = kept + h;
          const double up = loss(model, nullptr);
          p.data()[i] = kept - h;
          const double down = loss(model, nullptr);
          p.data()[i] = kept;
          keep_worst(worst, std::abs((up - down) / (2 * h) - g.data()[i]));
          largest = std::max(largest, std::abs(g.data()[i]));
        }
      },
      model, grad);
  CHECK(worst <= 1e-6 * largest);  // the rounding of differences
}

TEST_CASE("Dropout: refuses a rate out of range and a train pass without a seed", "[layers]") {
  const fw::IdentityLayer<double> inner(2);
  for (const double rate : {-0.1, 1.0, std::nan("")})
    CHECK_THROWS_AS(Identity(inner, rate), std::invalid_argument);
  const Identity layer(inner, 0.5);
  auto state = layer.initial_state();
  CHECK_THROWS_WITH(ones_through(layer, state, 3),
                    "Dropout: a train pass without a seed; call fw::seed_dropout(state, seed) for "
                    "every batch");
}

}  // namespace
