#include <array>
#include <complex>
#include <fastweights/core/random.hpp>
#include <fastweights/feature_maps/chain.hpp>
#include <fastweights/feature_maps/dpfp.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/feature_maps/favor_plus.hpp>
#include <fastweights/feature_maps/identity.hpp>
#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/feature_maps/relu.hpp>
#include <fastweights/feature_maps/softmax.hpp>
#include <fastweights/feature_maps/tanh.hpp>
#include <limits>
#include <tuple>
#include <unsupported/Eigen/AutoDiff>

#include "catch.hpp"

using Catch::Matchers::ContainsSubstring;
using Eigen::MatrixXd;
using Eigen::MatrixXf;
using Eigen::Vector2d;
using Eigen::VectorXd;
using Eigen::VectorXf;
using fw::Dynamic;
using fw::Index;

namespace {

using ThreeInARow = fw::Chain<fw::Dpfp<1>, fw::EluPlusOne, fw::L2Normalise>;

using Maps =
    std::tuple<fw::IdentityMap, fw::ReluMap, fw::EluPlusOne, fw::TanhMap, fw::Dpfp<1>, fw::Dpfp<3>,
               fw::FavorPlus<double>, fw::SoftmaxMap, fw::SumNormalise, fw::L2Normalise,
               fw::SumNormalised<fw::EluPlusOne>, fw::SumNormalised<fw::Dpfp<2>>,
               fw::L2Normalised<fw::FavorPlus<double>>, ThreeInARow>;

template <class M> M make(Index) { return {}; }
template <> fw::FavorPlus<double> make(Index d) { return {d, d + 2, 5}; }
template <> fw::L2Normalised<fw::FavorPlus<double>> make(Index d) {
  return {make<fw::FavorPlus<double>>(d), {}};
}

// The fewest rows a map takes: ν < 2d.
template <class M> constexpr Index fewest_rows = 1;
template <> constexpr Index fewest_rows<fw::Dpfp<3>> = 3;
template <> constexpr Index fewest_rows<fw::SumNormalised<fw::Dpfp<2>>> = 3;

// Normal entries, of lengths that FAVOR+ is made for; positive ones where a sum could cancel.
template <class M> MatrixXd input(Index d, Index steps, std::uint64_t seed = 1) {
  MatrixXd x(d, steps);
  fw::Random(seed).fill(x, std::pow(static_cast<double>(d), -0.25));
  if (std::is_same_v<M, fw::SumNormalise>) x = x.cwiseAbs().array() + 0.1;
  return x;
}

// What comes down to y. Not y itself: L2Normalise has no gradient along it.
MatrixXd random_gradient(const MatrixXd& y) {
  MatrixXd dy(y.rows(), y.cols());
  fw::Random(2).fill(dy);
  return dy;
}

template <class S, int F = Dynamic, class M, int D, int T>
auto mapped(const M& map, const Eigen::Matrix<S, D, T>& x) {
  constexpr auto nan = std::numeric_limits<float>::quiet_NaN();
  Eigen::Matrix<S, F, T> y(map.features(x.rows()), x.cols());
  y.setConstant(S(nan));
  fw::apply(map, x, y);
  return y;
}

template <class S, int D, int F, int T, class M>
auto gradient(const M& map, const Eigen::Matrix<S, D, T>& x, const Eigen::Matrix<S, F, T>& y,
              const Eigen::Matrix<S, F, T>& dy) {
  Eigen::Matrix<S, D, T> dx = Eigen::Matrix<S, D, T>::Zero(x.rows(), x.cols());
  fw::apply_vjp(map, x, y, dy, dx);
  return dx;
}

// max|a − b| / max|b|, and infinite where anything is NaN.
template <class A, class B> double difference(const A& a, const B& b) {
  if (a.hasNaN() || b.hasNaN()) return std::numeric_limits<double>::infinity();
  const double largest = static_cast<double>(b.cwiseAbs().maxCoeff());
  const double worst = static_cast<double>((a - b).cwiseAbs().maxCoeff());
  return largest > 0 ? worst / largest : worst;
}

// The gradient of Σ dy∘φ(x) by the complex step; all columns at once, as each goes by itself.
template <class M> MatrixXd complex_step(const M& map, const MatrixXd& x, const MatrixXd& dy) {
  constexpr double h = 1e-30;
  const auto complex_map = fw::cast_feature_map<std::complex<double>>(map);
  Eigen::MatrixXcd z = x.cast<std::complex<double>>();
  MatrixXd dx(x.rows(), x.cols());
  for (Index i = 0; i < x.rows(); ++i) {
    z.row(i).array() += std::complex<double>(0, h);
    dx.row(i) = mapped(complex_map, z).imag().cwiseProduct(dy).colwise().sum() / h;
    z.row(i) = x.row(i).cast<std::complex<double>>();
  }
  return dx;
}

template <class M> std::string message(const M& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing thrown";
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("gradients equal the complex step", "[feature_maps]", Maps) {
  static_assert(fw::FeatureMap<TestType>);
  for (const Index d : {1, 3, 17, 63, 64, 65, 100}) {
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
      CHECK((dx - expected).cwiseAbs().maxCoeff() < 1e-14);
      continue;
    }
    CHECK(difference(dx, expected) < 1e-12);
    fw::apply_vjp(map, x, y, dy, dx);
    CHECK(difference(dx, (2 * expected).eval()) < 1e-12);
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

TEMPLATE_LIST_TEST_CASE("tokens equal columns of a sequence, fixed sizes dynamic ones",
                        "[feature_maps]", Maps) {
  constexpr int rows = 17;
  constexpr int features = TestType::template fixed_features<rows>;
  const auto map = make<TestType>(rows);
  // More columns than one tile of a chain takes.
  const MatrixXd x = input<TestType>(rows, 300);
  const MatrixXd y = mapped(map, x);
  const MatrixXd dy = random_gradient(y);
  const MatrixXd dx = gradient(map, x, y, dy);

  const Eigen::Matrix<double, rows, Dynamic> fixed = x;
  const Eigen::Matrix<double, features, Dynamic> fixed_dy = dy;
  const auto fixed_y = mapped<double, features>(map, fixed);
  CHECK(difference(fixed_y, y) < 1e-14);
  CHECK(difference(gradient(map, fixed, fixed_y, fixed_dy), dx) < 1e-13);

  for (const Index t : {0, 57, 299}) {
    const VectorXd token = x.col(t);
    const VectorXd token_y = mapped(map, token);
    CHECK(difference(token_y, y.col(t)) < 1e-14);
    CHECK(difference(gradient(map, token, token_y, VectorXd(dy.col(t))), dx.col(t)) < 1e-13);

    const Eigen::Matrix<double, rows, 1> fixed_token = token;
    const Eigen::Matrix<double, features, 1> fixed_token_dy = dy.col(t);
    const auto fixed_token_y = mapped<double, features>(map, fixed_token);
    CHECK(difference(fixed_token_y, y.col(t)) < 1e-14);
    CHECK(difference(gradient(map, fixed_token, fixed_token_y, fixed_token_dy), dx.col(t)) < 1e-13);
  }
}

TEMPLATE_LIST_TEST_CASE("maps read and write views with strides", "[feature_maps]", Maps) {
  const auto map = make<TestType>(9);
  const MatrixXd x = input<TestType>(9, 6);
  const MatrixXd y = mapped(map, x);
  MatrixXd wide = MatrixXd::Constant(y.rows() + 3, 6, 7);
  MatrixXd tall(12, 6);
  tall.middleRows(2, 9) = x;
  fw::apply(map, tall.middleRows(2, 9), wide.middleRows(1, y.rows()));
  CHECK(difference(wide.middleRows(1, y.rows()), y) < 1e-15);
  CHECK((wide.topRows(1).array() == 7).all());
  CHECK((wide.bottomRows(2).array() == 7).all());

  const fw::SequenceView<const double, Dynamic> in(x);
  fw::TokenView<double, Dynamic> out(wide.col(2));
  const std::string thrown = message([&] { fw::apply(map, in, out); });
  CHECK_THAT(thrown, ContainsSubstring(std::string(TestType::name.substr(0, 4))));
  CHECK_THAT(thrown, ContainsSubstring("y has " + std::to_string(wide.rows()) + " rows"));
  CHECK(difference(wide.col(2).segment(1, y.rows()), y.col(2)) < 1e-15);
}

TEMPLATE_LIST_TEST_CASE("NaN stays in its column, and stays", "[feature_maps]", Maps) {
  const auto map = fw::cast_feature_map<float>(make<TestType>(33));
  MatrixXf x = input<TestType>(33, 3).template cast<float>();
  for (const Index i : {0, 15, 32}) {
    x.col(1).setZero();
    x(i, 1) = std::numeric_limits<float>::quiet_NaN();
    const MatrixXf y = mapped(map, x);
    CHECK(y.col(1).hasNaN());
    CHECK_FALSE(y.col(0).hasNaN());
    CHECK_FALSE(y.col(2).hasNaN());
  }
}

TEST_CASE("elementwise maps by hand", "[feature_maps]") {
  const VectorXd x = Eigen::Vector3d(-1, 0, 2);
  const VectorXd dy = Eigen::Vector3d(5, 6, 7);
  const double e = std::exp(-1.0);

  CHECK(difference(mapped(fw::EluPlusOne{}, x), Eigen::Vector3d(e, 1, 3)) < 1e-15);
  CHECK(difference(gradient(fw::EluPlusOne{}, x, mapped(fw::EluPlusOne{}, x), dy),
                   Eigen::Vector3d(5 * e, 6, 7)) < 1e-15);
  CHECK(mapped(fw::ReluMap{}, x) == Eigen::Vector3d(0, 0, 2));
  CHECK(gradient(fw::ReluMap{}, x, mapped(fw::ReluMap{}, x), dy) == Eigen::Vector3d(0, 0, 7));
  CHECK(mapped(fw::IdentityMap{}, x) == x);
  CHECK(gradient(fw::IdentityMap{}, x, x, dy) == dy);
  const double t = std::tanh(2.0);
  CHECK(difference(mapped(fw::TanhMap{}, x), Eigen::Vector3d(-std::tanh(1.0), 0, t)) < 1e-15);
  CHECK(gradient(fw::TanhMap{}, x, mapped(fw::TanhMap{}, x), dy)[2] ==
        Catch::Approx(7 * (1 - t * t)).epsilon(1e-13));
}

TEST_CASE("column maps by hand", "[feature_maps]") {
  const VectorXd dy = Vector2d(1, 0);
  const auto check = [&](const auto& map, const VectorXd& x, const Vector2d& y,
                         const Vector2d& dx) {
    const VectorXd given = mapped(map, x);
    CHECK(difference(given, y) < 1e-15);
    CHECK(difference(gradient(map, x, given, dy), dx) < 2e-15);
  };
  check(fw::SoftmaxMap{}, Vector2d(0, std::log(3.0)), {0.25, 0.75}, {0.1875, -0.1875});
  check(fw::SumNormalise{}, Vector2d(1, 3), {0.25, 0.75}, {0.1875, -0.0625});
  check(fw::L2Normalise{}, Vector2d(3, 4), {0.6, 0.8}, {0.128, -0.096});
}

TEST_CASE("DPFP by hand, with the index order of the listing", "[feature_maps]") {
  CHECK(mapped(fw::Dpfp<1>{}, VectorXd(Vector2d(1, -2))) == Eigen::Vector4d(2, 0, 0, 0));
  VectorXd three(12);
  three << 0, 2, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0;
  CHECK(mapped(fw::Dpfp<3>{}, VectorXd(Vector2d(1, 2))) == three);

  const VectorXd x = Vector2d(1, -2);
  const VectorXd dy = Eigen::Vector4d(3, 1, 1, 1);
  CHECK(gradient(fw::Dpfp<1>{}, x, mapped(fw::Dpfp<1>{}, x), dy) == Vector2d(6, -3));

  STATIC_REQUIRE(fw::Dpfp<2>::fixed_features<5> == 20);
  STATIC_REQUIRE(fw::Dpfp<2>::fixed_features<Dynamic> == Dynamic);
  CHECK(fw::Dpfp<2>{}.features(5) == 20);
}

TEST_CASE("FAVOR+ by hand", "[feature_maps]") {
  const fw::FavorPlus<double> map(MatrixXd(Vector2d(1, 2)));
  const double scale = std::exp(-0.15625) / std::sqrt(2.0);
  const VectorXd y = mapped(map, VectorXd(Vector2d(0.5, 0.25)));
  CHECK(difference(y, Vector2d(scale * std::exp(1.0), scale * std::exp(-1.0))) < 1e-15);
}

TEST_CASE("a chain is its maps in turn", "[feature_maps]") {
  const MatrixXd x = input<ThreeInARow>(6, 4);
  const MatrixXd in_turn =
      mapped(fw::L2Normalise{}, mapped(fw::EluPlusOne{}, mapped(fw::Dpfp<1>{}, x)));
  CHECK(difference(mapped(ThreeInARow{}, x), in_turn) < 1e-15);
  CHECK(ThreeInARow::name == "Dpfp then EluPlusOne then L2Normalise");
  STATIC_REQUIRE(ThreeInARow::fixed_features<6> == 12);
  STATIC_REQUIRE(std::is_same_v<decltype(fw::Chain(fw::Dpfp<2>{}, fw::SumNormalise{})),
                                fw::SumNormalised<fw::Dpfp<2>>>);
  STATIC_REQUIRE(std::is_same_v<decltype(fw::cast_feature_map<float>(
                                    make<fw::L2Normalised<fw::FavorPlus<double>>>(3))),
                                fw::L2Normalised<fw::FavorPlus<float>>>);
}

TEST_CASE("vectors without a length or a sum stay zero, with gradient zero", "[feature_maps]") {
  const auto stays_zero = [](const auto& map, const VectorXf& x) {
    const VectorXf y = mapped(map, x);
    CHECK((y.array() == 0).all());
    const VectorXf dy = VectorXf::Ones(y.size());
    CHECK((gradient(map, x, y, dy).array() == 0).all());
  };
  const VectorXf zero = VectorXf::Zero(17);
  stays_zero(fw::L2Normalise{}, zero);
  stays_zero(fw::SumNormalise{}, zero);
  stays_zero(fw::SumNormalise{}, Eigen::Vector2f(1, -1));
  stays_zero(fw::L2Normalised<fw::ReluMap>{}, -VectorXf::Ones(17));

  // DPFP-1 of odd d has no neighbours to multiply where the signs alternate.
  for (const Index d : {3, 5, 65}) {
    VectorXf alternating(d);
    for (Index i = 0; i < d; ++i) alternating[i] = i % 2 == 0 ? 2.F : -3.F;
    stays_zero(fw::SumNormalised<fw::Dpfp<1>>{}, alternating);
    stays_zero(fw::L2Normalised<fw::Dpfp<1>>{}, alternating);
    CHECK(mapped(fw::Dpfp<2>{}, alternating).sum() > 0);
  }
  CHECK(mapped(fw::Dpfp<1>{}, VectorXf(Eigen::Vector4f(2, -3, 2, -3))).sum() > 0);
}

TEST_CASE("complex steps away from a zero vector keep gradient zero", "[feature_maps]") {
  const MatrixXd zero = MatrixXd::Zero(3, 1);
  const MatrixXd dy = MatrixXd::Ones(3, 1);
  CHECK((complex_step(fw::L2Normalise{}, zero, dy).array() == 0).all());
  CHECK((complex_step(fw::SumNormalise{}, zero, dy).array() == 0).all());
}

TEST_CASE("normalisation in float from 1e-25 to 1e25", "[feature_maps]") {
  const MatrixXd x = input<fw::SumNormalise>(33, 2);
  MatrixXd dy(33, 2);
  fw::Random(3).fill(dy);
  const auto check = [&](const auto& map, double scale) {
    const MatrixXd y = mapped(map, x);
    const MatrixXd dx = gradient(map, x, y, dy);
    const MatrixXf scaled = (scale * x).cast<float>();
    const MatrixXf scaled_y = mapped(map, scaled);
    const MatrixXf scaled_dx = gradient(map, scaled, scaled_y, MatrixXf(dy.cast<float>()));
    CHECK(difference(scaled_y.cast<double>(), y) < 1e-6);
    CHECK(difference((scale * scaled_dx.cast<double>()).eval(), dx) < 1e-6);
  };
  for (const double scale : {1e25, 1.0, 1e-25}) {
    check(fw::SumNormalise{}, scale);
    check(fw::L2Normalise{}, scale);
  }
}

TEST_CASE("entries of 1e25 neither overflow nor turn into NaN", "[feature_maps]") {
  VectorXf x = VectorXf::Constant(17, -1e25F);
  x[3] = 1e25F;
  const VectorXf softmax = mapped(fw::SoftmaxMap{}, x);
  CHECK(softmax[3] == 1);
  CHECK(softmax.sum() == Catch::Approx(1));
  CHECK(mapped(fw::SoftmaxMap{}, VectorXf(VectorXf::Constant(4, -1e25F)))[0] == 0.25F);

  const VectorXf elu = mapped(fw::EluPlusOne{}, x);
  CHECK(elu[3] == 1e25F);
  CHECK(elu[0] >= 0);
  CHECK(elu[0] < 1e-37F);
  const VectorXf dx = gradient(fw::EluPlusOne{}, x, elu, VectorXf(VectorXf::Ones(17)));
  CHECK(dx[3] == 1);
  CHECK(dx[0] < 1e-37F);

  const VectorXf favor = mapped(fw::FavorPlus<float>(17, 8, 1), x);
  CHECK(favor.minCoeff() >= 0);
  CHECK(favor.maxCoeff() < 1e-37F);
}

TEST_CASE("FAVOR+ draws by the seed alone", "[feature_maps]") {
  fw::FavorPlus<double> map(5, 12, 1);
  const MatrixXd first = map.projection();
  map.redraw(2);
  CHECK((map.projection() - first).cwiseAbs().minCoeff() > 0);
  map.redraw(1);
  CHECK(map.projection() == first);
  CHECK(fw::FavorPlus<float>(5, 12, 1).projection() == first.cast<float>());
}

TEST_CASE("FAVOR+ features are orthogonal inside a block and of Gaussian length",
          "[feature_maps]") {
  const MatrixXd omega = fw::FavorPlus<double>(5, 12, 7).projection();
  const MatrixXd gram = omega.transpose() * omega;
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
  const MatrixXd x = input<fw::FavorPlus<double>>(3, 4);
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
  CHECK(difference(domega, (2 * expected).eval()) < 1e-12);
}

TEST_CASE("errors name the map, what was expected and what was given", "[feature_maps]") {
  const VectorXd x = VectorXd::Ones(4);
  const MatrixXd two = MatrixXd::Ones(4, 2);
  VectorXd y = VectorXd::Constant(9, 7);
  CHECK(message([&] { fw::apply(fw::Dpfp<1>{}, x, y); }) ==
        "Dpfp: y has 9 rows, the feature map expects 8");
  CHECK(message([&] { fw::apply(fw::ReluMap{}, two, y.head(4)); }) ==
        "ReluMap: y has 1 columns, the sequence expects 2");
  CHECK(message([&] { fw::apply(fw::SoftmaxMap{}, x.head(0), y.head(0)); }) ==
        "SoftmaxMap: x has 0 rows, expected at least 1");
  CHECK(message([&] { fw::apply(fw::Dpfp<8>{}, x, y); }) ==
        "Dpfp: nu is 8, expected 1 to 7 for x of 4 rows");
  CHECK(message([&] { fw::apply(fw::FavorPlus<double>(3, 2, 1), x, y.head(4)); }) ==
        "FavorPlus: x has 4 rows, the projection expects 3");
  CHECK(message([&] { fw::apply(fw::SumNormalised<fw::EluPlusOne>{}, x, y); }) ==
        "EluPlusOne then SumNormalise: y has 9 rows, the feature map expects 4");
  CHECK(message([&] { fw::FavorPlus<double>(0, 2, 1); }) ==
        "FavorPlus: d is 0, expected at least 1");
  CHECK(message([&] { fw::FavorPlus<double>(2, 0, 1); }) ==
        "FavorPlus: m is 0, expected at least 1");
  CHECK(message([&] { fw::FavorPlus<double>(MatrixXd(0, 3)); }) ==
        "FavorPlus: d is 0, expected at least 1");
  CHECK((y.array() == 7).all());

  VectorXd dx = VectorXd::Constant(4, 7);
  CHECK(message([&] { fw::apply_vjp(fw::ReluMap{}, x, x, x.head(3), dx); }) ==
        "ReluMap: dy has 3 rows, the feature map expects 4");
  CHECK(message([&] { fw::apply_vjp(fw::ReluMap{}, x, x.head(3), x, dx); }) ==
        "ReluMap: y has 3 rows, the feature map expects 4");
  CHECK(message([&] { fw::apply_vjp(fw::ReluMap{}, x, x, x, dx.head(2)); }) ==
        "ReluMap: dx has 2 rows, the input expects 4");
  CHECK(message([&] { fw::apply_vjp(fw::ReluMap{}, two, two, two, dx); }) ==
        "ReluMap: dx has 1 columns, the sequence expects 2");
  CHECK((dx.array() == 7).all());
}

TEST_CASE("the concept accepts maps and refuses what is none", "[feature_maps]") {
  struct NoName : fw::detail::KeepsRows {
    void map(const VectorXd&, VectorXd&) const {}
    void vjp(const VectorXd&, const VectorXd&, const VectorXd&, VectorXd&) const {}
  };
  STATIC_REQUIRE(fw::FeatureMap<fw::FavorPlus<float>>);
  STATIC_REQUIRE_FALSE(fw::FeatureMap<NoName>);
  STATIC_REQUIRE_FALSE(fw::FeatureMap<fw::Tanh>);
  STATIC_REQUIRE_FALSE(fw::FeatureMap<int>);
}

TEST_CASE("Random draws the same numbers everywhere", "[random]") {
  // The standard gives the 10000th number of the default seed: 9981545732273789042.
  fw::Random standard(5489);
  for (int i = 0; i < 9999; ++i) standard.uniform();
  CHECK(standard.uniform() == std::ldexp(static_cast<double>(9981545732273789042U >> 11), -53));

  fw::Random random(1);
  CHECK(random.normal() == Catch::Approx(0.35099249780849107).epsilon(1e-14));
  fw::Random copy = random;
  CHECK(copy.normal() == random.normal());
  CHECK(fw::FavorPlus<double>(3, 3, 1).projection()(0, 0) ==
        Catch::Approx(-0.38930829859771615).epsilon(1e-12));
}

TEST_CASE("Random has the distributions it names", "[random]") {
  fw::Random random(11);
  const Index count = 40000;
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
  CHECK(message([&] { random.below(0); }) == "Random: below(0) has no number to draw from");
}
