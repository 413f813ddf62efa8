#include "feature_maps/map_of.hpp"
#include "support/catch.hpp"

using namespace feature_map_checks;
using Eigen::Vector2d;

namespace {

template <class S, class M> std::unique_ptr<AnyMap<S>> any_map(Index d = 3) {
  return make_map<S>(kind_of<M>, d);
}

// φ(x) of a map that is none of the kinds.
template <class M> VectorXf mapped(const M& map, const VectorXf& x) {
  VectorXf y = VectorXf::Constant(map.features(x.size()), std::numeric_limits<float>::quiet_NaN());
  fw::apply(map, x, y);
  return y;
}

bool equal(const VectorXd& a, const VectorXd& b) { return a == b; }

}  // namespace

TEST_CASE("elementwise maps by hand", "[feature_maps]") {
  const VectorXd x = Eigen::Vector3d(-1, 0, 2);
  const VectorXd dy = Eigen::Vector3d(5, 6, 7);
  const double e = std::exp(-1.0);

  const auto elu = any_map<double, fw::EluPlusOne>();
  CHECK(difference(elu->map(x), Eigen::Vector3d(e, 1, 3)) < 1e-15);
  CHECK(difference(elu->gradient(x, elu->map(x), dy), Eigen::Vector3d(5 * e, 6, 7)) < 1e-15);
  const auto relu = any_map<double, fw::ReluMap>();
  CHECK(equal(relu->map(x), Eigen::Vector3d(0, 0, 2)));
  CHECK(equal(relu->gradient(x, relu->map(x), dy), Eigen::Vector3d(0, 0, 7)));
  const auto identity = any_map<double, fw::IdentityMap>();
  CHECK(equal(identity->map(x), x));
  CHECK(equal(identity->gradient(x, x, dy), dy));
  const auto tanh = any_map<double, fw::TanhMap>();
  const double t = std::tanh(2.0);
  CHECK(difference(tanh->map(x), Eigen::Vector3d(-std::tanh(1.0), 0, t)) < 1e-15);
  CHECK(tanh->gradient(x, tanh->map(x), dy)[2] == Catch::Approx(7 * (1 - t * t)).epsilon(1e-13));
}

TEST_CASE("column maps by hand", "[feature_maps]") {
  const VectorXd dy = Vector2d(1, 0);
  const auto check = [&](const auto& map, const VectorXd& x, const Vector2d& y,
                         const Vector2d& dx) {
    const VectorXd given = map->map(x);
    CHECK(difference(given, y) < 1e-15);
    CHECK(difference(map->gradient(x, given, dy), dx) < 2e-15);
  };
  check(any_map<double, fw::SoftmaxMap>(), Vector2d(0, std::log(3.0)), {0.25, 0.75},
        {0.1875, -0.1875});
  check(any_map<double, fw::SumNormalise>(), Vector2d(1, 3), {0.25, 0.75}, {0.1875, -0.0625});
  check(any_map<double, fw::L2Normalise>(), Vector2d(3, 4), {0.6, 0.8}, {0.128, -0.096});
}

TEST_CASE("DPFP by hand, with the index order of the listing", "[feature_maps]") {
  const auto one = any_map<double, fw::Dpfp<1>>();
  CHECK(equal(one->map(VectorXd(Vector2d(1, -2))), Eigen::Vector4d(2, 0, 0, 0)));
  VectorXd three(12);
  three << 0, 2, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0;
  CHECK(equal(any_map<double, fw::Dpfp<3>>()->map(VectorXd(Vector2d(1, 2))), three));

  const VectorXd x = Vector2d(1, -2);
  const VectorXd dy = Eigen::Vector4d(3, 1, 1, 1);
  CHECK(equal(one->gradient(x, one->map(x), dy), Vector2d(6, -3)));

  STATIC_REQUIRE(fw::Dpfp<2>::fixed_features<5> == 20);
  STATIC_REQUIRE(fw::Dpfp<2>::fixed_features<Dynamic> == Dynamic);
  CHECK(fw::Dpfp<2>{}.features(5) == 20);
}

TEST_CASE("Taylor features and symmetric powers by hand", "[feature_maps]") {
  const VectorXd x = Vector2d(2, 3);
  const double root = std::sqrt(2.0);
  VectorXd taylor(6);
  taylor << 1, 2, 3, 4 / root, 6, 9 / root;
  CHECK(difference(any_map<double, fw::TaylorMap>()->map(x), taylor) < 1e-15);
  CHECK(difference(any_map<double, fw::SymmetricPower<2>>()->map(x),
                   Eigen::Vector3d(4, 6 * root, 9)) < 1e-15);
  const double third = std::sqrt(3.0);
  CHECK(difference(any_map<double, fw::SymmetricPower<3>>()->map(x),
                   Eigen::Vector4d(8, 12 * third, 18 * third, 27)) < 1e-15);
  CHECK(mapped(fw::SymmetricPower<1>{}, x.cast<float>()) == x.cast<float>());
}

TEST_CASE("products of Taylor features and symmetric powers", "[feature_maps]") {
  const auto product = [](const auto& map, Index d) {
    const MatrixXd x = input(d, 2);
    MatrixXd y(map.features(d), 2);
    fw::apply(map, x, y);
    return std::pair(x.col(0).dot(x.col(1)), y.col(0).dot(y.col(1)));
  };
  const auto power = [&]<int P>(const fw::SymmetricPower<P>& map, Index d) {
    CAPTURE(P, d);
    const auto [s, given] = product(map, d);
    CHECK(std::abs(given - std::pow(s, P)) < 1e-13);
  };
  for (const Index d : {1, 2, 3, 5, 9}) {
    const auto [s, given] = product(fw::TaylorMap(), d);
    CHECK(std::abs(given - (1 + s + s * s / 2)) < 1e-13);
    power(fw::SymmetricPower<1>(), d);
    power(fw::SymmetricPower<2>(), d);
    power(fw::SymmetricPower<3>(), d);
    power(fw::SymmetricPower<4>(), d);
    power(fw::SymmetricPower<5>(), d);
  }
  STATIC_REQUIRE(fw::SymmetricPower<4>::fixed_features<7> == 210);
  STATIC_REQUIRE(fw::SymmetricPower<4>::fixed_features<Dynamic> == Dynamic);
  STATIC_REQUIRE(fw::TaylorMap::fixed_features<16> == 153);
  CHECK(fw::SymmetricPower<4>().features(7) == 210);
  CHECK(fw::TaylorMap().features(16) == 153);
  CHECK(message([] { fw::SymmetricPower<4>().features(1'000'000); }) ==
        "SymmetricPower: x has 1000000 rows, which is too many for degree 4");
}

TEST_CASE("a chain is its maps in turn", "[feature_maps]") {
  const MatrixXd x = input(6, 4);
  const MatrixXd dpfp = any_map<double, fw::Dpfp<1>>()->map(x);
  const MatrixXd elu = any_map<double, fw::EluPlusOne>()->map(dpfp);
  const MatrixXd in_turn = any_map<double, fw::L2Normalise>()->map(elu);
  CHECK(difference(any_map<double, ThreeInARow>()->map(x), in_turn) < 1e-15);
  CHECK(ThreeInARow::name == "Dpfp then EluPlusOne then L2Normalise");
  STATIC_REQUIRE(ThreeInARow::fixed_features<6> == 12);
  STATIC_REQUIRE(std::is_same_v<decltype(fw::Chain(fw::Dpfp<2>{}, fw::SumNormalise{})),
                                fw::SumNormalised<fw::Dpfp<2>>>);
  STATIC_REQUIRE(std::is_same_v<decltype(fw::cast_feature_map<float>(
                                    make<fw::L2Normalised<fw::FavorPlus<double>>>(3))),
                                fw::L2Normalised<fw::FavorPlus<float>>>);
}

TEST_CASE("vectors without a length or a sum stay zero, with gradient zero", "[feature_maps]") {
  const auto is_zero = [](const VectorXf& y, const VectorXf& dx) {
    CHECK((y.array() == 0).all());
    CHECK((dx.array() == 0).all());
  };
  const auto stays_zero = [&](const AnyMap<float>& map, const VectorXf& x) {
    const VectorXf y = map.map(x);
    is_zero(y, map.gradient(x, y, VectorXf(VectorXf::Ones(y.size()))));
  };
  const auto chain_stays_zero = [&](const auto& map, const VectorXf& x) {
    const VectorXf y = mapped(map, x), dy = VectorXf::Ones(y.size());
    VectorXf dx = VectorXf::Zero(x.size());
    fw::apply_vjp(map, x, y, dy, dx);
    is_zero(y, dx);
  };
  const VectorXf zero = VectorXf::Zero(17);
  stays_zero(*any_map<float, fw::L2Normalise>(), zero);
  stays_zero(*any_map<float, fw::SumNormalise>(), zero);
  stays_zero(*any_map<float, fw::SumNormalise>(), Eigen::Vector2f(1, -1));
  chain_stays_zero(fw::L2Normalised<fw::ReluMap>{}, -VectorXf::Ones(17));

  // DPFP-1 of odd d has no neighbours to multiply where the signs alternate.
  for (const Index d : {3, 5, 65}) {
    VectorXf alternating(d);
    for (Index i = 0; i < d; ++i) alternating[i] = i % 2 == 0 ? 2.F : -3.F;
    chain_stays_zero(fw::SumNormalised<fw::Dpfp<1>>{}, alternating);
    chain_stays_zero(fw::L2Normalised<fw::Dpfp<1>>{}, alternating);
    CHECK(mapped(fw::Dpfp<2>{}, alternating).sum() > 0);
  }
  CHECK(mapped(fw::Dpfp<1>{}, Eigen::Vector4f(2, -3, 2, -3)).sum() > 0);
}

TEST_CASE("complex steps away from a zero vector keep gradient zero", "[feature_maps]") {
  using Complex = std::complex<double>;
  const MatrixXd zero = MatrixXd::Zero(3, 1);
  const MatrixXd dy = MatrixXd::Ones(3, 1);
  CHECK((complex_step(*any_map<Complex, fw::L2Normalise>(), zero, dy).array() == 0).all());
  CHECK((complex_step(*any_map<Complex, fw::SumNormalise>(), zero, dy).array() == 0).all());
}

TEST_CASE("normalisation in float from 1e-25 to 1e25", "[feature_maps]") {
  const MatrixXd x = input(33, 2, /*positive=*/true);
  MatrixXd dy(33, 2);
  fw::Random(3).fill(dy);
  const auto check = [&](std::size_t kind, double scale) {
    const auto map = make_map<double>(kind, 33);
    const auto small_map = make_map<float>(kind, 33);
    const MatrixXd y = map->map(x);
    const MatrixXd dx = map->gradient(x, y, dy);
    const MatrixXf scaled = (scale * x).cast<float>();
    const MatrixXf scaled_y = small_map->map(scaled);
    const MatrixXf scaled_dx = small_map->gradient(scaled, scaled_y, MatrixXf(dy.cast<float>()));
    CHECK(difference(scaled_y.cast<double>(), y) < 1e-6);
    CHECK(difference(scale * scaled_dx.cast<double>(), dx) < 1e-6);
  };
  for (const double scale : {1e25, 1.0, 1e-25}) {
    check(kind_of<fw::SumNormalise>, scale);
    check(kind_of<fw::L2Normalise>, scale);
  }
}

TEST_CASE("entries of 1e25 neither overflow nor turn into NaN", "[feature_maps]") {
  VectorXf x = VectorXf::Constant(17, -1e25F);
  x[3] = 1e25F;
  const auto softmax_map = any_map<float, fw::SoftmaxMap>();
  const VectorXf softmax = softmax_map->map(x);
  CHECK(softmax[3] == 1);
  CHECK(softmax.sum() == Catch::Approx(1));
  CHECK(softmax_map->map(VectorXf(VectorXf::Constant(4, -1e25F)))[0] == 0.25F);

  const auto elu_map = any_map<float, fw::EluPlusOne>();
  const VectorXf elu = elu_map->map(x);
  CHECK(elu[3] == 1e25F);
  CHECK(elu[0] >= 0);
  CHECK(elu[0] < 1e-37F);
  const VectorXf dx = elu_map->gradient(x, elu, VectorXf(VectorXf::Ones(17)));
  CHECK(dx[3] == 1);
  CHECK(dx[0] < 1e-37F);

  const VectorXf favor = mapped(favor_plus(17, 8, 1).cast<float>(), x);
  CHECK(favor.minCoeff() >= 0);
  CHECK(favor.maxCoeff() < 1e-37F);
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
  CHECK(message([&] { fw::apply(favor_plus(3, 2, 1), x, y.head(4)); }) ==
        "FavorPlus: x has 4 rows, the projection expects 3");
  CHECK(message([&] { fw::apply(fw::SumNormalised<fw::EluPlusOne>{}, x, y); }) ==
        "EluPlusOne then SumNormalise: y has 9 rows, the feature map expects 4");
  CHECK(message([&] { favor_plus(0, 2, 1); }) == "FavorPlus: d is 0, expected at least 1");
  CHECK(message([&] { favor_plus(2, 0, 1); }) == "FavorPlus: m is 0, expected at least 1");
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
