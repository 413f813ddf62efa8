#include "feature_maps/feature_map_checks.hpp"

using namespace feature_map_checks;

TEMPLATE_LIST_TEST_CASE("gradients equal the complex step", "[feature_maps]", Maps) {
  static_assert(fw::FeatureMap<TestType>);
  for (const Index d : sizes({1, 3, 17, 63, 64, 65, 100}, {1, 3, 17})) {
    if (d < fewest_rows<TestType>) continue;
    CAPTURE(TestType::name, d);
    const auto map = make<TestType>(d);
    const MatrixXd x = input<TestType>(d, 5);
    const MatrixXd y = mapped(map, x);
    const MatrixXd dy = random_gradient(y);
    MatrixXd dx = gradient(map, x, y, dy);
    const MatrixXd expected = complex_step(map, x, dy);
    // One direction is all there is of a vector with a single entry: its gradient is 0, up to
    // rounding that has nothing to be relative to.
    if (d == 1) {
      CHECK(largest_entry(dx - expected) < 1e-14);
      continue;
    }
    CHECK(difference(dx, expected) < 1e-12);
    fw::apply_vjp(map, x, y, dy, dx);
    CHECK(difference(dx, 2 * expected) < 1e-12);
  }
}

TEMPLATE_LIST_TEST_CASE("gradients equal automatic differentiation", "[feature_maps]", Maps) {
  using Scalar = Eigen::AutoDiffScalar<Eigen::Vector3d>;
  const auto map = make<TestType>(3);
  const VectorXd x = input<TestType>(3, 1);
  Eigen::Matrix<Scalar, Dynamic, 1> seeded(3);
  for (int i = 0; i < 3; ++i) seeded[i] = Scalar(x[i], 3, i);
  const auto y = mapped(fw::cast_feature_map<Scalar>(map), seeded);
  const VectorXd plain = mapped(map, x);
  REQUIRE(y.size() == plain.size());
  for (Index f = 0; f < y.size(); ++f) {
    CHECK(std::abs(y[f].value() - plain[f]) < 1e-15);
    const VectorXd unit = VectorXd::Unit(y.size(), f);
    CHECK((gradient(map, x, plain, unit) - y[f].derivatives()).norm() < 1e-14);
  }
}

TEMPLATE_LIST_TEST_CASE("scalars agree", "[feature_maps]", Maps) {
  const auto map = make<TestType>(65);
  const MatrixXd x = input<TestType>(65, 4);
  const MatrixXd y = mapped(map, x);
  const MatrixXd dy = random_gradient(y);
  const MatrixXd dx = gradient(map, x, y, dy);

  const auto small_map = fw::cast_feature_map<float>(map);
  const MatrixXf small = x.cast<float>();
  const MatrixXf small_y = mapped(small_map, small);
  const MatrixXf small_dx = gradient(small_map, small, small_y, MatrixXf(dy.cast<float>()));
  // 65 products of two rounded numbers and an exponential of their sum.
  CHECK(difference(small_y.cast<double>(), y) < 1e-5);
  CHECK(difference(small_dx.cast<double>(), dx) < 1e-5);

  using Complex = std::complex<double>;
  const auto complex_map = fw::cast_feature_map<Complex>(map);
  const Eigen::MatrixXcd z = x.cast<Complex>();
  const Eigen::MatrixXcd z_y = mapped(complex_map, z);
  const Eigen::MatrixXcd dz = gradient(complex_map, z, z_y, Eigen::MatrixXcd(dy.cast<Complex>()));
  CHECK(difference(z_y.real(), y) < 1e-14);
  CHECK(difference(dz.real(), dx) < 1e-13);
}
