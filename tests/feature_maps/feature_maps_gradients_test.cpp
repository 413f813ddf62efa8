#include "feature_maps/any_map.hpp"
#include "support/catch.hpp"
#include "support/largest_entry.hpp"
#include "support/sizes.hpp"

using namespace feature_map_checks;
using Complex = std::complex<double>;

TEST_CASE("gradients equal the complex step", "[feature_maps]") {
  for (const Kind& kind : kinds())
    for (const Index d : sizes({1, 3, 17, 63, 64, 65, 100}, {1, 3, 17})) {
      if (d < kind.fewest_rows) continue;
      CAPTURE(kind.name, d);
      const auto map = make_map<double>(kind.index, d);
      const MatrixXd x = input(kind, d, 5);
      const MatrixXd y = map->map(x);
      const MatrixXd dy = random_gradient(y);
      MatrixXd dx = map->gradient(x, y, dy);
      const MatrixXd expected = complex_step(*make_map<Complex>(kind.index, d), x, dy);
      // A vector of one entry has a direction only, so its gradient is 0 up to rounding, and no
      // error can be relative to it.
      if (d == 1) {
        CHECK(largest_entry(dx - expected) < 1e-14);
        continue;
      }
      CHECK(difference(dx, expected) < 1e-12);
      map->apply_vjp(x, y, dy, dx);
      CHECK(difference(dx, 2 * expected) < 1e-12);
    }
}

TEST_CASE("gradients equal automatic differentiation", "[feature_maps]") {
  for (const Kind& kind : kinds()) {
    CAPTURE(kind.name);
    const auto map = make_map<double>(kind.index, 3);
    const VectorXd x = input(kind, 3, 1);
    const Derivatives y = autodiff(kind.index, x);
    const VectorXd plain = map->map(x);
    REQUIRE(y.values.size() == plain.size());
    for (Index f = 0; f < plain.size(); ++f) {
      CHECK(std::abs(y.values[f] - plain[f]) < 1e-15);
      const VectorXd unit = VectorXd::Unit(plain.size(), f);
      const VectorXd dx = map->gradient(x, plain, unit);
      CHECK((dx - y.jacobian.row(f).transpose()).norm() < 1e-14);
    }
  }
}

TEST_CASE("scalars agree", "[feature_maps]") {
  for (const Kind& kind : kinds()) {
    CAPTURE(kind.name);
    const auto map = make_map<double>(kind.index, 65);
    const MatrixXd x = input(kind, 65, 4);
    const MatrixXd y = map->map(x);
    const MatrixXd dy = random_gradient(y);
    const MatrixXd dx = map->gradient(x, y, dy);

    const auto small_map = make_map<float>(kind.index, 65);
    const MatrixXf small = x.cast<float>();
    const MatrixXf small_y = small_map->map(small);
    const MatrixXf small_dx = small_map->gradient(small, small_y, MatrixXf(dy.cast<float>()));
    // 65 products of two rounded numbers and an exponential of their sum.
    CHECK(difference(small_y.cast<double>(), y) < 1e-5);
    CHECK(difference(small_dx.cast<double>(), dx) < 1e-5);

    const auto complex_map = make_map<Complex>(kind.index, 65);
    const MatrixXcd z = x.cast<Complex>();
    const MatrixXcd z_y = complex_map->map(z);
    const MatrixXcd dz = complex_map->gradient(z, z_y, MatrixXcd(dy.cast<Complex>()));
    CHECK(difference(z_y.real(), y) < 1e-14);
    CHECK(difference(dz.real(), dx) < 1e-13);
  }
}
