#include "feature_maps/map_of.hpp"
#include "support/catch.hpp"

using namespace feature_map_checks;
using Eigen::Vector2d;

// Here, since the tests below compile the draw of a projection anyway.
fw::FavorPlus<double> feature_map_checks::favor_plus(Index d, Index m, std::uint64_t seed) {
  return {d, m, seed};
}

namespace {

template <class S, int T>
auto mapped(const fw::FavorPlus<S>& map, const Eigen::Matrix<S, Dynamic, T>& x) {
  using Y = Eigen::Matrix<S, Dynamic, T>;
  Y y = Y::Constant(map.features(x.rows()), x.cols(), S(std::numeric_limits<float>::quiet_NaN()));
  fw::apply(map, x, y);
  return y;
}

}  // namespace

TEST_CASE("FAVOR+ by hand", "[feature_maps]") {
  const fw::FavorPlus<double> map(MatrixXd(Vector2d(1, 2)));
  const double scale = std::exp(-0.15625) / std::sqrt(2.0);
  const VectorXd y = mapped(map, VectorXd(Vector2d(0.5, 0.25)));
  CHECK(difference(y, Vector2d(scale * std::exp(1.0), scale * std::exp(-1.0))) < 1e-15);
}

TEST_CASE("FAVOR+ draws by the seed alone", "[feature_maps]") {
  fw::FavorPlus<double> map(5, 12, 1);
  const MatrixXd first = map.projection();
  map.redraw(2);
  CHECK((map.projection() - first).cwiseAbs().minCoeff() > 0);
  map.redraw(1);
  CHECK(map.projection() == first);
  CHECK(fw::FavorPlus<float>(5, 12, 1).projection() == first.cast<float>());
  CHECK(fw::FavorPlus<double>(3, 3, 1).projection()(0, 0) ==  // on every machine
        Catch::Approx(-0.38930829859771615).epsilon(1e-12));
}

TEST_CASE("FAVOR+ features are orthogonal inside a block and of Gaussian length",
          "[feature_maps]") {
  const MatrixXd omega = fw::FavorPlus<double>(5, 12, 7).projection();
  const MatrixXd gram = omega.transpose().lazyProduct(omega);
  for (Index i = 0; i < 12; ++i)
    for (Index j = 0; j < i; ++j) {
      if (i / 5 == j / 5)
        CHECK(std::abs(gram(i, j)) < 1e-13);
      else
        CHECK(std::abs(gram(i, j)) > 1e-6);
    }
  // ‖ω‖² is χ² with d degrees of freedom: mean 8, variance 16.
  const Index count = 8000;
  const Eigen::ArrayXd squares =
      fw::FavorPlus<double>(8, count, 3).projection().colwise().squaredNorm().transpose();
  CHECK(squares.mean() == Catch::Approx(8).margin(0.2));
  CHECK((squares - squares.mean()).square().mean() == Catch::Approx(16).margin(1.5));
}

TEST_CASE("FAVOR+ estimates exp(x·y) without bias", "[feature_maps]") {
  const VectorXd x = Eigen::Vector4d(0.4, -0.3, 0.2, 0.5);
  const VectorXd y = Eigen::Vector4d(0.1, 0.6, -0.4, 0.3);
  fw::FavorPlus<double> map(4, 8, 0);
  Eigen::ArrayXd estimates(4000);
  for (Index i = 0; i < estimates.size(); ++i) {
    map.redraw(static_cast<std::uint64_t>(i));
    estimates[i] = mapped(map, x).dot(mapped(map, y));
  }
  const double spread = std::sqrt((estimates - estimates.mean()).square().mean());
  const double error = spread / std::sqrt(static_cast<double>(estimates.size()));
  CHECK(error < 0.005);
  CHECK(std::abs(estimates.mean() - std::exp(x.dot(y))) < 4 * error);
}

TEST_CASE("the gradient of FAVOR+'s projection equals the complex step", "[feature_maps]") {
  constexpr double h = 1e-30;
  const fw::FavorPlus<double> map(3, 5, 4);
  const MatrixXd x = input(3, 4);
  const MatrixXd y = mapped(map, x);
  MatrixXd dy(10, 4);
  fw::Random(6).fill(dy);
  MatrixXd expected(3, 5);
  for (Index j = 0; j < 5; ++j)
    for (Index i = 0; i < 3; ++i) {
      Eigen::MatrixXcd omega = map.projection().cast<std::complex<double>>();
      omega(i, j) += std::complex<double>(0, h);
      const Eigen::MatrixXcd z = x.cast<std::complex<double>>();
      const auto stepped = mapped(fw::FavorPlus<std::complex<double>>(omega), z);
      expected(i, j) = stepped.imag().cwiseProduct(dy).sum() / h;
    }
  MatrixXd domega = MatrixXd::Zero(3, 5);
  map.projection_vjp(x, y, dy, domega);
  CHECK(difference(domega, expected) < 1e-12);
  map.projection_vjp(x, y, dy, domega);
  CHECK(difference(domega, 2 * expected) < 1e-12);
}
