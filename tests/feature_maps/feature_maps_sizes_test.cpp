#include <limits>

#include "feature_maps/any_map.hpp"
#include "support/catch.hpp"

using namespace feature_map_checks;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("tokens equal columns of a sequence, fixed sizes dynamic ones", "[feature_maps]") {
  for (const Kind& kind : kinds()) {
    CAPTURE(kind.name);
    const auto map = make_double_map(kind.index, fixed_rows);
    // More columns than one tile of a chain takes.
    const MatrixXd x = input(kind, fixed_rows, 300);
    const MatrixXd y = map->map(x);
    const MatrixXd dy = random_gradient(y);
    const MatrixXd dx = map->gradient(x, y, dy);

    const MatrixXd fixed_y = map->map_fixed(x);
    CHECK(difference(fixed_y, y) < 1e-14);
    CHECK(difference(map->gradient_fixed(x, fixed_y, dy), dx) < 1e-13);

    for (const Index t : {0, 57, 299}) {
      CAPTURE(t);
      const VectorXd token = x.col(t), token_dy = dy.col(t);
      const VectorXd token_y = map->map(token);
      CHECK(difference(token_y, y.col(t)) < 1e-14);
      CHECK(difference(map->gradient(token, token_y, token_dy), dx.col(t)) < 1e-13);

      const VectorXd fixed_token_y = map->map_fixed(token);
      CHECK(difference(fixed_token_y, y.col(t)) < 1e-14);
      CHECK(difference(map->gradient_fixed(token, fixed_token_y, token_dy), dx.col(t)) < 1e-13);
    }
  }
}

TEST_CASE("maps read and write views with strides", "[feature_maps]") {
  for (const Kind& kind : kinds()) {
    CAPTURE(kind.name);
    const auto map = make_double_map(kind.index, 9);
    const MatrixXd x = input(kind, 9, 6);
    const MatrixXd y = map->map(x);
    MatrixXd wide = MatrixXd::Constant(y.rows() + 3, 6, 7);
    MatrixXd tall(12, 6);
    tall.middleRows(2, 9) = x;
    map->map_rows(tall, 2, 9, wide, 1);
    CHECK(difference(wide.middleRows(1, y.rows()), y) < 1e-15);
    CHECK((wide.topRows(1).array() == 7).all());
    CHECK((wide.bottomRows(2).array() == 7).all());

    CHECK_THAT(message([&] { map->map_views(x, wide, 2); }),
               ContainsSubstring(": y has " + std::to_string(wide.rows()) + " rows"));
    CHECK(difference(wide.col(2).segment(1, y.rows()), y.col(2)) < 1e-15);
  }
}

TEST_CASE("NaN stays in its column, and stays", "[feature_maps]") {
  for (const Kind& kind : kinds()) {
    CAPTURE(kind.name);
    const auto map = make_map<float>(kind.index, 33);
    MatrixXf x = input(kind, 33, 3).cast<float>();
    for (const Index i : {0, 15, 32}) {
      x.col(1).setZero();
      x(i, 1) = std::numeric_limits<float>::quiet_NaN();
      const MatrixXf y = map->map(x);
      CHECK(y.col(1).hasNaN());
      CHECK_FALSE(y.col(0).hasNaN());
      CHECK_FALSE(y.col(2).hasNaN());
    }
  }
}
