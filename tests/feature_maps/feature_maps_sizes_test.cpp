#include "feature_maps/feature_map_checks.hpp"

using namespace feature_map_checks;
using Catch::Matchers::ContainsSubstring;

TEMPLATE_LIST_TEST_CASE("tokens equal columns of a sequence, fixed sizes dynamic ones",
                        "[feature_maps]", Maps) {
  constexpr int rows = 5;
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
  CHECK_THAT(message([&] { fw::apply(map, in, out); }),
             ContainsSubstring(": y has " + std::to_string(wide.rows()) + " rows"));
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
