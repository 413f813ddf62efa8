#include <complex>
#include <fastweights/math/random.hpp>
#include <fastweights/training/adamw.hpp>
#include <fastweights/training/losses.hpp>
#include <fastweights/training/schedule.hpp>
#include <limits>

#include "support/affine_map.hpp"
#include "support/catch.hpp"
#include "support/largest_entry.hpp"

using Catch::Matchers::ContainsSubstring;
using fw::Index;

namespace {

using Model = AffineMap<double>;

Model filled(double weight, double bias) {
  Model model(1, 1);
  model.weight << weight;
  model.bias << bias;
  return model;
}

// max|given − Im loss(x + ih)/h| over the entries of x.
template <class Loss>
double complex_step_error(Eigen::MatrixXcd x, const Eigen::MatrixXd& given, const Loss& loss) {
  constexpr double h = 1e-30;
  double worst = 0;
  for (Index n = 0; n < x.size(); ++n) {
    const std::complex<double> kept = x(n);
    x(n) += std::complex<double>(0, h);
    keep_worst(worst, std::abs(loss(x).imag() / h - given(n)));
    x(n) = kept;
  }
  return worst;
}

}  // namespace

TEST_CASE("cross_entropy: a worked example", "[training]") {
  // softmax(1, 2, 3) = 0.0900, 0.2447, 0.6652
  Eigen::MatrixXd logits(3, 2), dlogits(3, 2), expected(3, 2);
  logits << 1, 1, 2, 2, 3, 3;
  const double p0 = 0.090030573170380458, p1 = 0.24472847105479764, p2 = 0.66524095577482189;
  const std::vector<int> targets{0, 2};
  CHECK(fw::cross_entropy(logits, targets, dlogits) ==
        Catch::Approx((2.4076059644443806 + 0.40760596444438046) / 2).epsilon(1e-15));
  expected << p0 - 1, p0, p1, p1, p2, p2 - 1;
  CHECK(largest_entry(dlogits - expected / 2) <= 1e-16);
}

TEST_CASE("cross_entropy: the gradient of its value; logits may be overwritten", "[training]") {
  fw::Random random(1);
  Eigen::MatrixXd logits(17, 5), dlogits(17, 5);
  random.fill(logits, 3);
  const std::vector<int> targets{0, 16, 3, 3, 8};
  const double value = fw::cross_entropy(logits, targets, dlogits);
  CHECK(complex_step_error(logits, dlogits, [&](const Eigen::MatrixXcd& z) {
          Eigen::MatrixXcd dz(17, 5);
          return fw::cross_entropy(z, targets, dz);
        }) <= 1e-16);
  CHECK(fw::cross_entropy(logits, targets, logits) == value);
  CHECK(logits == dlogits);
}

TEST_CASE("cross_entropy: logits of any size", "[training]") {
  Eigen::MatrixXf logits(2, 2), dlogits(2, 2);
  logits << 1e4f, -1e4f, -1e4f, 1e4f;
  const std::vector<int> right{0, 1}, wrong{1, 0};
  CHECK(fw::cross_entropy(logits, right, dlogits) == 0);
  CHECK(dlogits.isZero(0));
  CHECK(fw::cross_entropy(logits, wrong, dlogits) == 2e4f);
  CHECK(dlogits.allFinite());
}

TEST_CASE("cross_entropy: refusals leave the gradient as it was", "[training]") {
  Eigen::MatrixXd logits = Eigen::MatrixXd::Zero(3, 2), dlogits = Eigen::MatrixXd::Ones(3, 2);
  CHECK_THROWS_WITH(fw::cross_entropy(logits, std::vector<int>{0, 3}, dlogits),
                    "cross_entropy: token 1 is 3, expected 0 to 2");
  CHECK_THROWS_WITH(fw::cross_entropy(logits, std::vector<int>{0}, dlogits),
                    "cross_entropy: logits has 2 columns, the sequence expects 1");
  CHECK_THROWS_WITH(fw::cross_entropy(logits, std::vector<int>{}, dlogits),
                    ContainsSubstring("cross_entropy: targets has no tokens"));
  CHECK((dlogits.array() == 1).all());
}

TEST_CASE("squared_error: half the square, averaged over tokens", "[training]") {
  Eigen::MatrixXd y(2, 2), target(2, 2), dy(2, 2), expected(2, 2);
  y << 1, 2, 3, 4;
  target << 0, 2, 5, 1;
  CHECK(fw::squared_error(y, target, dy) == 0.25 * (1 + 4 + 9));
  expected << 0.5, 0, -1, 1.5;
  CHECK(dy == expected);
  CHECK_THROWS_WITH(fw::squared_error(y, target.leftCols(1), dy),
                    "squared_error: target has 1 columns, the sequence expects 2");
}

TEST_CASE("AdamW: three steps worked out by hand", "[training]") {
  // Computed with 40 decimal digits. The weight, a matrix, decays by 0.1; the bias does not.
  Model model = filled(0.5, -0.25);
  fw::AdamW<Model> optimiser(model, {.weight_decay = 0.1});
  CHECK(optimiser.step(model, filled(0.5, 1), 0.1) ==
        Catch::Approx(std::sqrt(1.25)).epsilon(1e-15));
  CHECK(model.weight(0) == Catch::Approx(0.39500000199999996).epsilon(1e-14));
  CHECK(model.bias(0) == Catch::Approx(-0.34999999900000001).epsilon(1e-14));
  optimiser.step(model, filled(-1, 0.25), 0.05);
  CHECK(model.weight(0) == Catch::Approx(0.41133017811028278).epsilon(1e-14));
  CHECK(model.bias(0) == Catch::Approx(-0.39152987511386399).epsilon(1e-14));
  optimiser.step(model, filled(0.25, -2), 0.1);
  CHECK(model.weight(0) == Catch::Approx(0.42088594242759077).epsilon(1e-14));
  CHECK(model.bias(0) == Catch::Approx(-0.36412628976597103).epsilon(1e-14));
  CHECK(optimiser.steps == 3);
}

TEST_CASE("AdamW: clipping scales the whole gradient to the norm", "[training]") {
  Model clipped = filled(1, 1), scaled = filled(1, 1);
  fw::AdamW<Model> a(clipped, {.clip = 1}), b(scaled);
  CHECK(a.step(clipped, filled(3, 4), 0.1) == Catch::Approx(5));
  b.step(scaled, filled(0.6, 0.8), 0.1);
  a.step(clipped, filled(0.3, -0.4), 0.1);  // below the norm: as it is
  b.step(scaled, filled(0.3, -0.4), 0.1);
  CHECK(a.first.weight(0) == Catch::Approx(b.first.weight(0)).epsilon(1e-15));
  CHECK(a.second.bias(0) == Catch::Approx(b.second.bias(0)).epsilon(1e-15));
  CHECK(clipped.weight(0) == Catch::Approx(scaled.weight(0)).epsilon(1e-15));
  CHECK(clipped.bias(0) == Catch::Approx(scaled.bias(0)).epsilon(1e-15));
}

TEST_CASE("AdamW: a copy of moments and count continues as the original", "[training]") {
  Model model = filled(1, 2);
  fw::AdamW<Model> optimiser(model);
  optimiser.step(model, filled(1, -1), 0.1);
  Model resumed = model;
  fw::AdamW<Model> other(resumed);
  other.first = optimiser.first;
  other.second = optimiser.second;
  other.steps = optimiser.steps;
  optimiser.step(model, filled(-0.5, 2), 0.1);
  other.step(resumed, filled(-0.5, 2), 0.1);
  CHECK(model.weight == resumed.weight);
  CHECK(model.bias == resumed.bias);
}

TEST_CASE("AdamW: a bad gradient is refused, and nothing is changed", "[training]") {
  Model model = filled(1, 2);
  fw::AdamW<Model> optimiser(model);
  CHECK_THROWS_WITH(
      optimiser.step(model, filled(1, std::numeric_limits<double>::quiet_NaN()), 0.1),
      ContainsSubstring("AdamW: the gradient's norm is") && ContainsSubstring("at step 1"));
  CHECK_THROWS_WITH(optimiser.step(model, Model(1, 2), 0.1),
                    ContainsSubstring("AdamW: the parameters of grad differ"));
  CHECK(model.weight(0) == 1);
  CHECK(model.bias(0) == 2);
  CHECK(optimiser.steps == 0);
  CHECK(optimiser.first.weight(0) == 0);
}

TEST_CASE("Schedules: warm-up to the peak, down to the floor, and stay there", "[training]") {
  const fw::WarmupCosine cosine{.peak = 1, .warmup = 4, .total = 12, .floor = 0.2};
  const fw::WarmupLinear linear{.peak = 1, .warmup = 4, .total = 12, .floor = 0.2};
  for (long long step : {0, 1, 2, 3}) {
    CHECK(cosine(step) == 0.25 * static_cast<double>(step + 1));
    CHECK(linear(step) == cosine(step));
  }
  CHECK(cosine(4) == 1);
  CHECK(cosine(6) == Catch::Approx(0.2 + 0.4 * (1 + std::sqrt(0.5))).epsilon(1e-15));
  CHECK(cosine(8) == Catch::Approx(0.6).epsilon(1e-15));
  CHECK(cosine(12) == 0.2);
  CHECK(cosine(1000) == 0.2);
  CHECK(linear(4) == 1);
  CHECK(linear(6) == Catch::Approx(0.8).epsilon(1e-15));
  CHECK(linear(12) == Catch::Approx(0.2).epsilon(1e-15));
  CHECK(linear(1000) == Catch::Approx(0.2).epsilon(1e-15));

  // No warm-up, and nothing but warm-up.
  CHECK(fw::WarmupCosine{.peak = 3, .total = 10}(0) == 3);
  const fw::WarmupLinear only_warmup{.peak = 2, .warmup = 4, .total = 4, .floor = 0.5};
  CHECK(only_warmup(3) == 2);
  CHECK(only_warmup(4) == 0.5);
}

TEST_CASE("Training: a linear map is learned from examples", "[training]") {
  fw::Random random(2);
  AffineMap<float> truth(5, 3), model(5, 3);
  fw::initialise(truth, random);
  fw::initialise(model, random);
  fw::AdamW<AffineMap<float>> optimiser(model, {.weight_decay = 0});
  const fw::WarmupCosine rate{.peak = 0.05, .warmup = 10, .total = 300};
  Eigen::MatrixXf x(5, 32), target(3, 32), y(3, 32), dy(3, 32);
  float loss = 0;
  for (int step = 0; step < 300; ++step) {
    random.fill(x);
    target = (truth.weight * x).colwise() + truth.bias;
    y = (model.weight * x).colwise() + model.bias;
    loss = fw::squared_error(y, target, dy);
    AffineMap<float> grad(5, 3);
    grad.weight = dy * x.transpose();
    grad.bias = dy.rowwise().sum();
    optimiser.step(model, grad, rate(step));
  }
  CHECK(loss < 1e-6f);
  CHECK((model.weight - truth.weight).norm() < 1e-2f);
}
