// Tokens that do not count in a loss, and parts of a batch.

#include <fastweights/math/random.hpp>
#include <fastweights/training/losses.hpp>
#include <limits>

#include "support/catch.hpp"
#include "support/largest_entry.hpp"

namespace {

using fw::Index;

struct Case {
  Eigen::MatrixXd logits{9, 6}, dlogits{9, 6};
  std::vector<int> targets{0, 8, 3, -100, 5, -100};
  Case() {
    fw::Random random(1);
    random.fill(logits, 3);
  }
};

TEST_CASE("cross_entropy: ignored tokens count for nothing", "[training]") {
  Case c;
  const double loss = fw::cross_entropy(c.logits, c.targets, c.dlogits, {.ignore_index = -100});
  const std::vector<Index> counted{0, 1, 2, 4};
  const Eigen::MatrixXd part = c.logits(Eigen::all, counted);
  Eigen::MatrixXd dpart(9, 4);
  const std::vector<int> targets{0, 8, 3, 5};
  CHECK(std::abs(loss - fw::cross_entropy(part, targets, dpart)) <= 1e-15);
  CHECK(largest_entry(c.dlogits(Eigen::all, counted) - dpart) <= 1e-16);
  CHECK(c.dlogits.col(3).isZero(0));
  CHECK(c.dlogits.col(5).isZero(0));

  const std::vector<double> mask{1, 1, 1, 0, 1, 0};
  const std::vector<int> any{0, 8, 3, 7, 5, 2};
  Eigen::MatrixXd masked(9, 6);
  CHECK(fw::cross_entropy(c.logits, any, masked, {.weights = mask}) == loss);
  CHECK(masked == c.dlogits);
}

TEST_CASE("cross_entropy: weights and divisor", "[training]") {
  Case c;
  const std::vector<double> weights{0.5, 2, 0, 1, 1.5, 0};
  const fw::LossOptions options{.ignore_index = -100, .weights = weights};
  const double loss = fw::cross_entropy(c.logits, c.targets, c.dlogits, options);
  double expected = 0;
  for (const std::size_t t : {0U, 1U, 4U}) {
    const Eigen::MatrixXd logits = c.logits.col(Index(t));
    const std::vector<int> target{c.targets[t]};
    Eigen::MatrixXd d(9, 1);
    expected += weights[t] * fw::cross_entropy(logits, target, d) / 4;
    CHECK(largest_entry(c.dlogits.col(Index(t)) - weights[t] / 4 * d) <= 1e-16);
  }
  CHECK(std::abs(loss - expected) <= 1e-15);

  // The parts of a batch with the divisor of the whole.
  Eigen::MatrixXd left = c.logits.leftCols(2), right = c.logits.rightCols(4), dl = left, dr = right;
  const std::span<const int> targets(c.targets);
  const std::span<const double> all(weights);
  const double parts =
      fw::cross_entropy(left, targets.first(2), dl,
                        {.ignore_index = -100, .weights = all.first(2), .divisor = 4}) +
      fw::cross_entropy(right, targets.last(4), dr,
                        {.ignore_index = -100, .weights = all.last(4), .divisor = 4});
  CHECK(std::abs(parts - loss) <= 1e-15);
  CHECK(largest_entry(c.dlogits.leftCols(2) - dl) <= 1e-16);
  CHECK(largest_entry(c.dlogits.rightCols(4) - dr) <= 1e-16);
}

TEST_CASE("cross_entropy: no token counts", "[training]") {
  Case c;
  const std::vector<int> none(6, -1);
  CHECK(fw::cross_entropy(c.logits, none, c.dlogits, {.ignore_index = -1}) == 0);
  CHECK(c.dlogits.isZero(0));
}

TEST_CASE("cross_entropy: options out of range are refused", "[training]") {
  Case c;
  const auto refused = [&](const fw::LossOptions& o, const std::string& message) {
    const Eigen::MatrixXd before = c.dlogits = Eigen::MatrixXd::Ones(9, 6);
    CHECK_THROWS_WITH(fw::cross_entropy(c.logits, c.targets, c.dlogits, o), message);
    CHECK(c.dlogits == before);
  };
  refused({}, "cross_entropy: token 3 is -100, expected 0 to 8");
  const std::vector<double> few(5, 1), bad{1, 1, -1, 1, 1, 1},
      nan(6, std::numeric_limits<double>::quiet_NaN());
  refused({.ignore_index = -100, .weights = few},
          "cross_entropy: weights has 5 numbers, the targets expects 6");
  refused({.ignore_index = -100, .weights = bad},
          "cross_entropy: weight 2 is -1, expected a finite number of at least 0");
  refused({.ignore_index = -100, .weights = nan},
          "cross_entropy: weight 0 is nan, expected a finite number of at least 0");
  refused({.ignore_index = -100, .divisor = -1},
          "cross_entropy: divisor is -1, expected a finite number above 0, or 0");
  const std::vector<double> huge(6, 1e308), tiny(6, 1e-310);
  refused({.ignore_index = -100, .weights = huge},
          "cross_entropy: a weight of 1e+308 over inf is out of range");
  refused({.ignore_index = -100, .divisor = 1e-320},
          "cross_entropy: a weight of 1 over 9.99989e-321 is out of range");
  CHECK(std::isfinite(
      fw::cross_entropy(c.logits, c.targets, c.dlogits, {.ignore_index = -100, .weights = tiny})));
  CHECK(c.dlogits.allFinite());
}

}  // namespace
