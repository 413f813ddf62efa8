// Products of matrices of any size: see math/products.hpp and kernels/simd/packed_product.hpp.

#include <fastweights/math/products.hpp>
#include <fastweights/math/random.hpp>
#include <limits>

#include "support/catch.hpp"
#include "support/largest_entry.hpp"

namespace {

using Eigen::Index;
template <class S> using Matrix = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic>;
template <class S>
using RowMatrix = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// A matrix inside a larger one. That of a factor is NaN elsewhere: reading too much shows in the
// result. That of a target has a number there: writing too much shows in it.
template <class Whole> struct Inside {
  using S = typename Whole::Scalar;
  Whole whole;
  Index rows, cols;

  Inside(Index r, Index c, fw::Random& random, S outside = std::numeric_limits<S>::quiet_NaN())
      : whole(Whole::Constant(r + 5, c + 3, outside)), rows(r), cols(c) {
    for (Index j = 0; j < c; ++j)
      for (Index i = 0; i < r; ++i) whole(i + 2, j + 1) = S(random.normal());
  }
  auto block() { return whole.block(2, 1, rows, cols); }
  bool has_around(S outside) const {
    return (whole.array() == outside).count() == whole.size() - rows * cols;
  }
};

template <class C, class A, class B> void multiplies(Index rows, Index depth, Index cols) {
  using S = typename C::Scalar;
  fw::Random random(1);
  Inside<A> a(rows, depth, random);
  Inside<B> b(depth, cols, random);
  const S outside = 1000;
  Inside<C> c(rows, cols, random, outside);
  const Eigen::MatrixXd expected =
      c.block().template cast<double>() +
      a.block().template cast<double>() * b.block().template cast<double>();
  const Eigen::MatrixXd sizes =
      c.block().template cast<double>().cwiseAbs() +
      a.block().template cast<double>().cwiseAbs() * b.block().template cast<double>().cwiseAbs();
  auto to = c.block();
  fw::detail::add_product(to, a.block(), b.block());
  INFO(rows << " x " << depth << " x " << cols);
  const double limit = 16 * double(std::numeric_limits<S>::epsilon());
  CHECK(largest_entry(
            ((c.block().template cast<double>() - expected).array() / sizes.array()).matrix()) <=
        limit);
  CHECK(c.has_around(outside));
}

template <class S> void all_orders(Index rows, Index depth, Index cols) {
  using M = Matrix<S>;
  using R = RowMatrix<S>;
  multiplies<M, M, M>(rows, depth, cols);
  multiplies<M, R, M>(rows, depth, cols);
  multiplies<M, M, R>(rows, depth, cols);
  multiplies<M, R, R>(rows, depth, cols);
  multiplies<R, M, M>(rows, depth, cols);
  multiplies<R, R, M>(rows, depth, cols);
}

TEST_CASE("products: agree with double in every order and size", "[products]") {
  for (const Index rows : {1, 3, 7, 16, 17, 33, 64, 65, 100, 131})
    for (const Index cols : {1, 2, 5, 7, 13, 17, 24})
      for (const Index depth : {1, 8, 63, 128, 129, 300}) {
        all_orders<float>(rows, depth, cols);
        all_orders<double>(rows, depth, cols);
      }
  multiplies<Matrix<float>, Matrix<float>, Matrix<float>>(1031, 700, 1);
  multiplies<Matrix<double>, Matrix<double>, Matrix<double>>(1031, 700, 1);
}

TEST_CASE("products: a column has the same bits alone and among others", "[products]") {
  fw::Random random(2);
  for (const Index rows : {4, 5, 17, 64, 65, 200, 600})
    for (const Index depth : {1, 7, 128, 300}) {
      Inside<Matrix<float>> a(rows, depth, random), b(depth, 23, random);
      Eigen::MatrixXf together(rows, 23), alone(rows, 23), part(rows, 23);
      fw::detail::set_product(together, a.block(), b.block());
      for (Index j = 0; j < 23; ++j) {
        auto column = alone.col(j);
        fw::detail::set_product(column, a.block(), b.block().col(j));
      }
      INFO(rows << " x " << depth);
      CHECK(together == alone);
      const Index half = (rows + 1) / 2;
      auto upper = part.topRows(half), lower = part.bottomRows(rows - half);
      fw::detail::set_product(upper, a.block().topRows(half), b.block());
      fw::detail::set_product(lower, a.block().bottomRows(rows - half), b.block());
      CHECK(together == part);
    }
}

TEST_CASE("products: a target that is set may hold anything before", "[products]") {
  fw::Random random(3);
  for (const Index rows : {1, 5, 17, 64, 100, 200})
    for (const Index cols : {1, 3, 24}) {
      Inside<Matrix<double>> a(rows, 150, random), b(150, cols, random);
      Eigen::MatrixXd set = Eigen::MatrixXd::Constant(rows, cols, std::nan("")),
                      added = Eigen::MatrixXd::Zero(rows, cols);
      RowMatrix<double> by_rows = set;
      fw::detail::set_product(set, a.block(), b.block());
      fw::detail::set_product(by_rows, a.block(), b.block());
      fw::detail::add_product(added, a.block(), b.block());
      INFO(rows << " x " << cols);
      CHECK(set == added);
      CHECK(largest_entry(by_rows - added) <= 1e-12);
    }
}

TEST_CASE("products: threads do not change the bits", "[products]") {
  fw::Random random(4);
  const int before = Eigen::nbThreads();
  for (const Index rows : {130, 257})
    for (const Index cols : {64, 131}) {
      Inside<Matrix<float>> a(rows, 300, random), b(300, cols, random);
      const auto product = [&](int threads) {
        Eigen::setNbThreads(threads);
        Eigen::MatrixXf c(rows, cols);
        fw::detail::set_product(c, a.block(), b.block(), fw::detail::one_block);
        return c;
      };
      const Eigen::MatrixXf one = product(1);
      CHECK(product(2) == one);
      CHECK(product(3) == one);
    }
  Eigen::setNbThreads(before);
}

TEST_CASE("products: empty factors", "[products]") {
  Eigen::MatrixXf c = Eigen::MatrixXf::Ones(3, 4);
  fw::detail::add_product(c, Eigen::MatrixXf(3, 0), Eigen::MatrixXf(0, 4));
  CHECK((c.array() == 1).all());
  fw::detail::set_product(c, Eigen::MatrixXf(3, 0), Eigen::MatrixXf(0, 4));
  CHECK(c.isZero(0));
  auto column = c.col(0);
  c.setOnes();
  fw::detail::set_product(column, Eigen::MatrixXf(3, 0), Eigen::VectorXf(0));
  CHECK(c.col(0).isZero(0));
  CHECK((c.rightCols(3).array() == 1).all());
  Eigen::MatrixXf none(0, 4);
  CHECK_NOTHROW(fw::detail::add_product(none, Eigen::MatrixXf(0, 2), Eigen::MatrixXf(2, 4)));
}

}  // namespace
