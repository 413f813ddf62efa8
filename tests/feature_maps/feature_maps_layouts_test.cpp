#include "feature_maps/map_of.hpp"
#include "support/catch.hpp"

// Operands whose columns are not contiguous, which the maps read and write as they are.

using namespace feature_map_checks;

namespace {

using RowMajor = Eigen::Matrix<double, Dynamic, Dynamic, Eigen::RowMajor>;

template <class M> void takes_row_major(const M& map, std::size_t kind) {
  INFO(M::name);
  const MatrixXd x = input(3, 4, true);
  const auto usual = make_map<double>(kind, 3);
  const MatrixXd y = usual->map(x), dy = random_gradient(y);
  const RowMajor row_x = x, row_dy = dy;
  RowMajor row_y = RowMajor::Constant(y.rows(), 4, 7), row_dx = RowMajor::Zero(3, 4);
  fw::apply(map, row_x, row_y);
  fw::apply_vjp(map, row_x, row_y, row_dy, row_dx);
  CHECK(difference(row_y, y) < 1e-15);
  CHECK(difference(row_dx, usual->gradient(x, y, dy)) < 1e-14);
}

}  // namespace

TEST_CASE("maps take row-major matrices", "[feature_maps]") {
  takes_row_major(fw::TanhMap{}, kind_of<fw::TanhMap>);
  takes_row_major(ThreeInARow{}, kind_of<ThreeInARow>);
  takes_row_major(make<fw::FavorPlus<double>>(3), kind_of<fw::FavorPlus<double>>);
}

TEST_CASE("maps take expressions, vectors with strides and sequences of one row",
          "[feature_maps]") {
  const MatrixXd x = input(3, 4);
  const auto tanh = make_map<double>(kind_of<fw::TanhMap>, 3);
  MatrixXd y(3, 4);
  fw::apply(fw::TanhMap{}, 2 * x, y);
  CHECK(difference(y, tanh->map(MatrixXd(2 * x))) < 1e-15);

  const auto l2 = make_map<double>(kind_of<fw::L2Normalise>, 3);
  MatrixXd columns = x.transpose();
  fw::apply(fw::L2Normalise{}, x.col(1), columns.row(1).transpose());
  CHECK(difference(columns.row(1).transpose(), l2->map(MatrixXd(x.col(1)))) < 1e-15);

  Eigen::RowVectorXd row(4);
  fw::apply(fw::TanhMap{}, x.row(2), row);
  CHECK(difference(row, tanh->map(MatrixXd(x.row(2)))) < 1e-15);
}
