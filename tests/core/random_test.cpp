#include <Eigen/Core>
#include <array>
#include <cmath>
#include <fastweights/math/random.hpp>

#include "support/catch.hpp"

TEST_CASE("Random draws the same numbers everywhere", "[random]") {
  // The standard gives the 10000th number of the default seed: 9981545732273789042.
  fw::Random standard(5489);
  for (int i = 0; i < 9999; ++i) standard.uniform();
  CHECK(standard.uniform() == std::ldexp(static_cast<double>(9981545732273789042U >> 11), -53));

  fw::Random random(1);
  CHECK(random.normal() == Catch::Approx(0.35099249780849107).epsilon(1e-14));
  fw::Random copy = random;
  CHECK(copy.normal() == random.normal());
}

TEST_CASE("Random has the distributions it names", "[random]") {
  fw::Random random(11);
  const Eigen::Index count = 40000;
  Eigen::ArrayXd uniform(count);
  for (double& u : uniform) u = random.uniform();
  CHECK(uniform.minCoeff() >= 0);
  CHECK(uniform.maxCoeff() < 1);
  CHECK(uniform.mean() == Catch::Approx(0.5).margin(0.006));
  CHECK(uniform.square().mean() == Catch::Approx(1.0 / 3).margin(0.006));

  Eigen::ArrayXXd normal(200, count / 200);
  random.fill(normal, 2);
  CHECK(normal.mean() == Catch::Approx(0).margin(0.04));
  CHECK(normal.square().mean() == Catch::Approx(4).margin(0.12));
  CHECK(normal.square().square().mean() == Catch::Approx(3 * 16).margin(4));

  std::array<int, 7> hits{};
  for (int i = 0; i < 70000; ++i) ++hits.at(random.below(7));
  for (const int hit : hits) CHECK(hit == Catch::Approx(10000).margin(400));
  CHECK(random.below(1) == 0);
  CHECK_THROWS_WITH(random.below(0), "Random: below(0) has no number to draw from");
}
