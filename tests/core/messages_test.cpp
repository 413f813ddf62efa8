// The texts of errors for mistakes that are easy to make.

#include <fastweights/any_memory/table/deltas.hpp>
#include <fastweights/memories/recurrent/delta_rnn.hpp>

#include "support/catch.hpp"

namespace {

using Catch::Matchers::ContainsSubstring;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

TEST_CASE("a memory without sizes names key_size", "[messages]") {
  CHECK_THROWS_WITH(fw::DeltaRule<float>(),
                    ContainsSubstring("DeltaRule: key_size is not given, expected "
                                      "DeltaRule({.key_size = 64})"));
  CHECK_THROWS_WITH(fw::DeltaRnn<float>(), ContainsSubstring("DeltaRnn: key_size is not given"));
  CHECK_THROWS_WITH(fw::DeltaRule<float>({.value_size = 3}), ContainsSubstring("key_size"));
  CHECK_NOTHROW(fw::DeltaRule<float, 4>());
}

TEST_CASE("a row-major matrix is called row-major", "[messages]") {
  const fw::DeltaRule<double> m({.key_size = 3});
  auto state = fw::initial_state(m);
  const RowMajor row_major = RowMajor::Ones(3, 5);
  const MatrixXd x = MatrixXd::Ones(3, 5);
  const VectorXd beta = VectorXd::Ones(5);
  MatrixXd y = x;
  CHECK_THROWS_WITH(fw::scan(m, state, {x, row_major, beta}, {x}, {y}),
                    ContainsSubstring("an argument of 3 rows and 5 columns is row-major"));
  const fw::AnyMemory<double> any = m;
  auto any_state = any.initial_state();
  CHECK_THROWS_WITH(any.scan(any_state, {x, row_major, beta}, {x}, {y}),
                    ContainsSubstring("value of 3 rows and 5 columns is row-major"));
  CHECK(any_state == any.initial_state());
  CHECK_THROWS_WITH(fw::write(m, state, {x.row(0).head(3), x.col(0), beta[0]}),
                    ContainsSubstring("has entries that are 3 numbers apart"));
}

}  // namespace
