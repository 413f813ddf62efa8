#include <array>
#include <fastweights/math/products.hpp>

#include "support/catch.hpp"

namespace {

using Eigen::Index;

// Without OpenMP Eigen has one thread.
template <class S> void check_bits(Index rows, Index depth, Index cols) {
  using Matrix = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic>;
  const Matrix a = Matrix::Random(rows, depth), b = Matrix::Random(depth, cols);
  const Matrix bt = b.transpose();
  const auto products = [&](int threads) {
    Eigen::setNbThreads(threads);
    Matrix both(rows, 2 * cols);
    fw::detail::set_product(both.leftCols(cols), a, b, fw::detail::one_block);
    fw::detail::set_product(both.rightCols(cols), a, bt.transpose(), fw::detail::one_block);
    return both;
  };
  const Matrix one = products(1);
  INFO(rows << " × " << depth << " × " << cols << ", " << sizeof(S) << " bytes");
  for (const int threads : {2, 3}) CHECK(products(threads) == one);
  Eigen::setNbThreads(0);
}

TEST_CASE("products have the same bits for any number of Eigen's threads", "[products]") {
  for (const auto& [rows, depth, cols] :
       {std::array<Index, 3>{256, 400, 256}, {300, 257, 301}, {63, 1000, 77}}) {
    check_bits<float>(rows, depth, cols);
    check_bits<double>(rows, depth, cols);
  }
}

}  // namespace
