#include <complex>
#include <fastweights/kernels/simd/outer_product.hpp>
#include <fastweights/math/random.hpp>
#include <limits>

#include "support/catch.hpp"
#include "support/largest_entry.hpp"

using Eigen::Index;

TEMPLATE_TEST_CASE("for_packets: every entry once, in order", "[kernels]", float, double,
                   std::complex<double>) {
  for (Index n = 0; n <= 70; ++n) {
    Index next = 0;
    fw::detail::for_packets<TestType>(n, [&]<class P>(Index i) {
      CHECK(i == next);
      next += Index(sizeof(P) / sizeof(TestType));
    });
    CHECK(next == n);
  }
}

TEMPLATE_TEST_CASE("Outer products: agree with Eigen, write nothing else", "[kernels]", float,
                   double) {
  using Matrix = Eigen::Matrix<TestType, Eigen::Dynamic, Eigen::Dynamic>;
  using Vector = Eigen::Matrix<TestType, Eigen::Dynamic, 1>;
  fw::Random random(1);
  const TestType decay = TestType(0.75), small = 8 * std::numeric_limits<TestType>::epsilon();
  for (Index n : {1, 3, 4, 7, 8, 15, 16, 17, 20, 31, 37})
    for (Index columns : {1, 5}) {
      Matrix from(n, columns), to(n, columns + 1);
      Vector a(n), c(n), b(columns), d(columns), product(n + 1);
      const auto draw = [&](auto&... each) { (random.fill(each), ...); };
      draw(from, to, a, b, c, d, product);
      const Vector beyond = to.col(columns);
      const TestType after = product[n];
      const Matrix expected = decay * from + a * b.transpose();
      const auto difference = [&](const auto& x, const auto& y) {
        return largest_entry(x - y) / TestType(columns);
      };
      INFO("n " << n << ", columns " << columns);
      fw::detail::add_outer_product(to.data(), from.data(), decay, a.data(), b.data(), n, columns);
      CHECK(difference(to.leftCols(columns), expected) <= small);
      to.leftCols(columns) = from;
      fw::detail::add_outer_product(to.data(), to.data(), decay, a.data(), b.data(), n, columns);
      CHECK(difference(to.leftCols(columns), expected) <= small);
      to.leftCols(columns) = from;
      fw::detail::add_outer_product(to.data(), decay, a.data(), b.data(), n, columns, d.data(),
                                    product.data());
      CHECK(difference(to.leftCols(columns), expected) <= small);
      CHECK(difference(product.head(n), expected * d) <= 4 * small);
      fw::detail::add_outer_products(to.data(), a.data(), b.data(), c.data(), d.data(), n, columns);
      CHECK(difference(to.leftCols(columns), expected + a * b.transpose() + c * d.transpose()) <=
            2 * small);
      CHECK(to.col(columns) == beyond);
      CHECK(product[n] == after);
    }
}
