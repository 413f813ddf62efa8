#include "feature_maps/feature_map_checks.hpp"

using namespace feature_map_checks;
using Eigen::Vector2d;

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
    CHECK(difference(scale * scaled_dx.cast<double>(), dx) < 1e-6);
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
  CHECK(fw::FavorPlus<double>(3, 3, 1).projection()(0, 0) ==  // on every machine
        Catch::Approx(-0.38930829859771615).epsilon(1e-12));
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
  CHECK(difference(domega, 2 * expected) < 1e-12);
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
