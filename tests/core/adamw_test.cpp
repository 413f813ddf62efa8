#include <fastweights/layers/feed_forward.hpp>
#include <fastweights/layers/language_model.hpp>
#include <fastweights/math/random.hpp>
#include <fastweights/training/adamw.hpp>
#include <limits>

#include "support/affine_map.hpp"
#include "support/catch.hpp"
#include "support/largest_entry.hpp"

/// \file
/// Arguments that AdamW refuses, and gradients near the largest number.

using Catch::Matchers::ContainsSubstring;
namespace {

using Model = AffineMap<double>;

Model filled(double weight, double bias) {
  Model model(1, 1);
  model.weight << weight;
  model.bias << bias;
  return model;
}

using Options = fw::AdamWOptions;
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

// A model without a matrix, such as a norm.
struct Vectors {
  Eigen::VectorXf weight = Eigen::VectorXf::Ones(4);
  static constexpr auto names = fw::names("weight");
};

}  // namespace

TEST_CASE("AdamW: options out of range are refused, at construction and at a step", "[training]") {
  const std::vector<std::pair<Options, std::string>> bad{
      {{.beta1 = 1}, "AdamW: beta1 is 1, expected at least 0 and below 1"},
      {{.beta1 = -0.1}, "AdamW: beta1 is -0.1, expected at least 0 and below 1"},
      {{.beta1 = not_a_number}, "AdamW: beta1 is nan, expected at least 0 and below 1"},
      {{.beta2 = 1}, "AdamW: beta2 is 1, expected at least 0 and below 1"},
      {{.beta2 = infinity}, "AdamW: beta2 is inf, expected at least 0 and below 1"},
      {{.epsilon = 0}, "AdamW: epsilon is 0, expected a finite number above 0"},
      {{.epsilon = not_a_number}, "AdamW: epsilon is nan, expected a finite number above 0"},
      {{.weight_decay = -1}, "AdamW: weight_decay is -1, expected a finite number of at least 0"},
      {{.weight_decay = not_a_number},
       "AdamW: weight_decay is nan, expected a finite number of at least 0"},
      {{.clip = -1}, "AdamW: clip is -1, expected a finite number of at least 0"},
      {{.clip = not_a_number}, "AdamW: clip is nan, expected a finite number of at least 0"}};
  Model model = filled(1, 2);
  fw::AdamW<Model> optimiser(model);
  for (const auto& [options, message] : bad) {
    CHECK_THROWS_WITH(fw::AdamW<Model>(model, options), message);
    optimiser.options = options;
    CHECK_THROWS_WITH(optimiser.step(model, filled(1, 1), 0.1), message);
  }
  optimiser.options = {};
  for (const double rate : {not_a_number, infinity, -0.1})
    CHECK_THROWS_WITH(optimiser.step(model, filled(1, 1), rate),
                      ContainsSubstring("AdamW: learning_rate is ") &&
                          ContainsSubstring(", expected a finite number of at least 0"));
  optimiser.steps = -1;
  CHECK_THROWS_WITH(optimiser.step(model, filled(1, 1), 0.1),
                    "AdamW: steps is -1, expected at least 0");
  optimiser.steps = 0;
  CHECK(model.weight(0) == 1);
  CHECK(model.bias(0) == 2);
  CHECK(optimiser.first.weight(0) == 0);
  CHECK(optimiser.second.bias(0) == 0);
  optimiser.step(model, filled(1, 1), 0.1);
  CHECK(optimiser.steps == 1);

  // In the model's scalar type.
  using Single = AffineMap<float>;
  Single single(1, 1);
  single.weight << 1;
  fw::AdamW<Single> large(single);
  CHECK_THROWS_WITH(fw::AdamW<Single>(single, {.epsilon = 1e-60}),
                    "AdamW: epsilon is 1e-60, expected a finite number above 0");
  CHECK_THROWS_WITH(large.step(single, single, 1e39),
                    "AdamW: learning_rate is 1e+39, expected a finite number of at least 0");
}

TEMPLATE_TEST_CASE("AdamW: gradients whose squares overflow", "[training]", float, double) {
  using S = TestType;
  using Layer = AffineMap<S>;
  const double huge = std::is_same_v<S, float> ? 1e20 : 1e200;
  fw::Random random(3);
  Layer start(7, 5), direction(7, 5);
  random.fill(start.weight);
  random.fill(start.bias);
  random.fill(direction.weight);
  random.fill(direction.bias);
  for (const double clip : {0.0, 1.0}) {
    Layer scaled = start, ordinary = start;
    fw::AdamW<Layer> a(scaled, {.clip = clip}), b(ordinary, {.clip = clip});
    for (int step = 0; step < 20; ++step) {
      Layer g = direction, of_huge = direction;
      g.bias *= S(step % 3 - 1.5);
      of_huge.weight = direction.weight * S(huge);
      of_huge.bias = g.bias * S(huge);
      const double norm = b.step(ordinary, g, 0.01);
      CHECK(a.step(scaled, of_huge, 0.01) == Catch::Approx(norm * huge).epsilon(1e-5));
    }
    CHECK(fw::all_finite(a.first));
    CHECK(fw::all_finite(a.second));
    // Without clipping, both directions are divided by their own size.
    const S tolerance = clip > 0 ? S(1e-5) : S(2e-3);
    CHECK((scaled.weight - ordinary.weight).norm() <= tolerance * ordinary.weight.norm());
    CHECK((scaled.bias - ordinary.bias).norm() <= S(0.05) * ordinary.bias.norm());
  }
}

TEST_CASE("AdamW: the largest gradient of float moves no weight by more than a few rates",
          "[training]") {
  using Layer = AffineMap<float>;
  Layer layer(64, 64), gradient(64, 64);
  layer.weight.setOnes();
  gradient.weight.setConstant(std::numeric_limits<float>::max());
  gradient.weight(5) = 1e-30f;
  fw::AdamW<Layer> optimiser(layer, {.weight_decay = 0});
  for (int step = 1; step <= 100; ++step) {
    gradient.weight(3) *= -1;
    const double norm = optimiser.step(layer, gradient, 0.01);
    CHECK(norm == Catch::Approx(64 * 3.4028234e38).epsilon(1e-3));
    CHECK(largest_entry((layer.weight.array() - 1).matrix()) <= 0.011f * static_cast<float>(step));
  }
  CHECK(fw::all_finite(optimiser.second));
  CHECK(layer.weight(0) == Catch::Approx(0.0f).margin(0.01f));
}

TEST_CASE("AdamW: clipping by a factor whose square is below the smallest float", "[training]") {
  using Layer = AffineMap<float>;
  Layer layer(1, 1), gradient(1, 1);
  layer.weight << 1;
  gradient.weight << 1e18f;
  fw::AdamW<Layer> optimiser(layer, {.epsilon = 1e-30, .weight_decay = 0, .clip = 1e-15});
  optimiser.step(layer, gradient, 0.01);
  CHECK(layer.weight(0) == Catch::Approx(0.99f).epsilon(1e-5));
}

TEST_CASE("AdamW: a gradient that is not finite is named; weights and moments stay", "[training]") {
  AffineMap<float> model(3, 2);
  model.weight.setOnes();
  fw::AdamW<AffineMap<float>> optimiser(model);
  auto gradient = fw::zero_gradient(model);
  gradient.weight.setOnes();
  optimiser.step(model, gradient, 0.1);
  const auto before = model;
  const auto moments = optimiser;
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    gradient.bias[1] = bad;
    CHECK_THROWS_WITH(optimiser.step(model, gradient, 0.1),
                      ContainsSubstring("AdamW: the gradient's norm is") &&
                          ContainsSubstring("at step 2: bias is not finite"));
  }
  CHECK(model.weight == before.weight);
  CHECK(model.bias == before.bias);
  CHECK(optimiser.first.weight == moments.first.weight);
  CHECK(optimiser.second.weight == moments.second.weight);
  CHECK(optimiser.first.bias == moments.first.bias);
  CHECK(optimiser.steps == 1);
}

TEST_CASE("AdamW: a model that was not initialised is refused", "[training]") {
  const auto refused = ContainsSubstring(
      "AdamW: all weight matrices of the model are 0; call fw::initialise(model, random)");
  AffineMap<float> layer(3, 2), gradient(3, 2);
  gradient.weight.setOnes();
  fw::AdamW<AffineMap<float>> optimiser(layer);  // may be made before the weights are loaded
  CHECK_THROWS_WITH(optimiser.step(layer, gradient, 0.1), refused);
  CHECK(layer.weight.isZero(0));
  CHECK(optimiser.steps == 0);
  fw::Random random(1);
  fw::initialise(layer, random);
  optimiser.step(layer, gradient, 0.1);
  CHECK(optimiser.steps == 1);

  // A regression may start from 0.
  AffineMap<float> zero(3, 2);
  fw::AdamW<AffineMap<float>> convex(zero, {.accept_zero_model = true});
  convex.step(zero, gradient, 0.1);
  CHECK(zero.weight(0) == Catch::Approx(-0.1f));

  // Norms start at 1, and vectors of weights may start at 0.
  using namespace fw::networks;
  Network<float> model = language_model<float>({.symbols = 5, .width = 4}, [](const auto& x) {
    return x + feed_forward(convolution(rms_norm(x, "norm", {}), "conv", 3, true), "ffn");
  });
  fw::initialise(model, random);
  for (auto& weight : model.weights)
    if (weight.axes.size() > 1) weight.value.setZero();
  fw::AdamW<Network<float>> of_model(model);
  const auto dmodel = fw::zero_gradient(model);
  CHECK_THROWS_WITH(of_model.step(model, dmodel, 0.1), refused);
  Vectors vectors, dvectors{Eigen::VectorXf::Zero(4)};
  fw::AdamW<Vectors> of_vectors(vectors);
  of_vectors.step(vectors, dvectors, 0.1);
  CHECK(of_vectors.steps == 1);
}

TEST_CASE("zero_gradient: a layer of the same shape, all parameters 0", "[training]") {
  AffineMap<double> layer(3, 2);
  layer.weight.setOnes();
  layer.bias.setOnes();
  const auto gradient = fw::zero_gradient(layer);
  CHECK(gradient.weight.rows() == 2);
  CHECK(gradient.weight.cols() == 3);
  CHECK(gradient.weight.isZero(0));
  CHECK(gradient.bias.size() == 2);
  CHECK(gradient.bias.isZero(0));
  CHECK(layer.weight(0) == 1);
}
