#include <Eigen/LU>
#include <fastweights/continuous/ridge.hpp>
#include <fastweights/math/random.hpp>

#include "support/catch.hpp"
#include "support/largest_entry.hpp"

namespace {

using Eigen::MatrixXd;
using fw::Index;
using Basis = fw::GaussianBasis<double>;
using LongMatrix = Eigen::Matrix<long double, -1, -1>;

// The operator of all targets by the equivalent form (ΨᵀΨ + λI)⁻¹ Ψᵀ, by LU in long double.
template <class B>
LongMatrix by_definition(const B& basis, const fw::detail::Targets& to, double ridge) {
  std::vector<double> all = to.past;
  all.insert(all.end(), to.new_tokens.begin(), to.new_tokens.end());
  all.insert(all.end(), to.zeros.begin(), to.zeros.end());
  const LongMatrix psi = fw::detail::basis_at(basis, all).template cast<long double>();
  LongMatrix gram = psi.transpose() * psi;
  gram.diagonal().array() += static_cast<long double>(ridge);
  return gram.fullPivLu().solve(LongMatrix(psi.transpose()));
}

template <class B>
double operator_error(const B& basis, const fw::detail::Targets& to, double ridge) {
  const auto g = fw::ridge_operator(basis, to, ridge);
  const LongMatrix exact = by_definition(basis, to, ridge);
  REQUIRE(g.past.rows() == static_cast<Index>(to.past.size()));
  REQUIRE(g.new_tokens.rows() == static_cast<Index>(to.new_tokens.size()));
  MatrixXd ours(g.past.rows() + g.new_tokens.rows(), basis.size());
  ours << g.past, g.new_tokens;
  const LongMatrix difference = ours.template cast<long double>() - exact.topRows(ours.rows());
  return static_cast<double>(difference.norm() / exact.topRows(ours.rows()).norm());
}

TEST_CASE("the ridge operator agrees with its definition", "[continuous][ridge]") {
  const std::vector<Basis> bases{{1, {0.3}},           {5, {0.1}},       {7, {0.05, 0.1}},
                                 {8, {0.1, 0.2, 0.4}}, {9, {0.02, 0.3}}, {2, {0.1, 0.2, 0.4}}};
  for (const Basis& basis : bases)
    for (const Index length : {1, 2, 7, 8})
      for (const Index past : {0, 1, 6})
        for (const double ridge : {0.01, 1.0}) {
          INFO("N " << basis.size() << ", L " << length << ", M " << past);
          const double tau = past > 0 ? 0.4 : 0;
          using fw::detail::cell_centres, fw::detail::published_positions;
          CHECK(operator_error(basis, cell_centres(past, length, tau, 0.5), ridge) <= 1e-11);
          CHECK(operator_error(basis, cell_centres(past, length, tau, 0), ridge) <= 1e-11);
          CHECK(operator_error(basis, published_positions(past, length, tau), ridge) <= 1e-11);
        }
  for (const Index n : {1, 3, 8})
    CHECK(operator_error(fw::RectangularBasis<double>(n), fw::detail::cell_centres(4, 5, 0.5, 0.5),
                         0.1) <= 1e-14);
}

TEST_CASE("slots with one target each are only shrunk by the ridge", "[continuous][ridge]") {
  const fw::RectangularBasis<double> basis(6);
  const auto g = fw::ridge_operator(basis, fw::detail::cell_centres(0, 6, 0, 0.5), 0.25);
  CHECK(largest_entry(g.new_tokens - MatrixXd::Identity(6, 6) / 1.25) <= 1e-15);
  const auto two = fw::ridge_operator(basis, fw::detail::cell_centres(6, 3, 0.5, 0), 0.25);
  for (Index m = 0; m < 6; ++m) CHECK(two.past(m, m / 2) == Catch::Approx(1 / 2.25));
  for (Index l = 0; l < 3; ++l) CHECK(two.new_tokens(l, 3 + l) == Catch::Approx(1 / 1.25));
}

TEST_CASE("a small ridge interpolates", "[continuous][ridge]") {
  const Basis basis(24, {0.05, 0.1});
  const auto to = fw::detail::cell_centres(0, 12, 0, 0);
  fw::Random random(1);
  MatrixXd x(3, 12);
  random.fill(x);
  double last = 1;
  for (const double ridge : {1e-2, 1e-4, 1e-6}) {
    const auto g = fw::ridge_operator(basis, to, ridge);
    const double error =
        largest_entry(x * g.new_tokens * fw::detail::basis_at(basis, to.new_tokens) - x);
    INFO("ridge " << ridge << ", error " << error);
    CHECK(error < 0.1 * last);
    last = error;
  }
  CHECK(last <= 1e-6);
}

TEST_CASE("operators that cannot be computed throw", "[continuous][ridge]") {
  const Basis same(Eigen::ArrayXd::Constant(9, 0.5), Eigen::ArrayXd::Constant(9, 0.01));
  CHECK_THROWS_WITH(
      fw::ridge_operator(same, fw::detail::cell_centres(0, 9, 0, 0), -1e-3),
      Catch::Matchers::ContainsSubstring("ridge_operator: the normal equations are not positive"));
}

void check_positions(const std::vector<double>& given, const std::vector<double>& expected) {
  REQUIRE(given.size() == expected.size());
  for (std::size_t i = 0; i < given.size(); ++i)
    CHECK(given[i] == Catch::Approx(expected[i]).margin(1e-15));
}

TEST_CASE("targets are at cell centres", "[continuous][ridge]") {
  const auto first = fw::detail::cell_centres(0, 4, 0, 0.5);
  CHECK(first.past.empty());
  check_positions(first.new_tokens, {0.125, 0.375, 0.625, 0.875});
  check_positions(first.zeros, {-0.375, -0.125, 1.125, 1.375});
  const auto later = fw::detail::cell_centres(2, 3, 0.5, 0.2);
  check_positions(later.past, {0.125, 0.375});
  check_positions(later.new_tokens, {0.5 + 0.5 / 6, 0.75, 1 - 0.5 / 6});
  check_positions(later.zeros, {-0.1, 1.1});
  CHECK(fw::detail::cell_centres(1, 1, 0.5, 0.1).zeros.size() == 2);  // 0.2 of a cell each side
  CHECK(fw::detail::cell_centres(5, 9, 0.5, 0).zeros.empty());
}

TEST_CASE("the published positions", "[continuous][ridge]") {
  const auto even = fw::detail::published_positions(0, 2, 0);  // 4 points from −¼ to 5/4
  check_positions(even.new_tokens, {0.25, 0.75});
  check_positions(even.zeros, {-0.25, 1.25});
  const auto odd = fw::detail::published_positions(0, 3, 0);  // 5 points from −1/6 to 7/6
  check_positions(odd.new_tokens, {1.0 / 6, 0.5, 5.0 / 6});
  check_positions(odd.zeros, {-1.0 / 6, 7.0 / 6});
  check_positions(fw::detail::published_positions(0, 1, 0).new_tokens, {0.5});
  for (const Index length : {1, 2, 5, 8, 33}) {
    const auto to = fw::detail::published_positions(0, length, 0);
    CHECK(to.new_tokens.size() == static_cast<std::size_t>(length));
    CHECK(to.zeros.size() == static_cast<std::size_t>(length % 2 != 0 ? length - 1 : length));
    const auto later = fw::detail::published_positions(3, length, 0.75);
    check_positions(later.past, {0.25, 0.5, 0.75});
    CHECK(later.new_tokens.back() == Catch::Approx(1));
    CHECK(later.new_tokens.front() == Catch::Approx(0.75 + 0.25 / static_cast<double>(length)));
    for (const double t : later.zeros) CHECK((t < 0 || t > 1));
  }
}

TEST_CASE("a basis has evenly spaced centres, with all widths at each", "[continuous]") {
  const auto check = [](const Basis& basis, const std::vector<double>& means,
                        const std::vector<double>& widths) {
    REQUIRE(basis.size() == static_cast<Index>(means.size()));
    for (Index n = 0; n < basis.size(); ++n) {
      const auto i = static_cast<std::size_t>(n);
      CHECK(basis.means()[n] == means[i]);
      CHECK(basis.variances()[n] == Catch::Approx(widths[i] * widths[i]));
    }
  };
  check(Basis(5, {0.1}), {0, 0.25, 0.5, 0.75, 1}, {0.1, 0.1, 0.1, 0.1, 0.1});
  check(Basis(5, {0.1, 0.2}), {0, 0, 0.5, 0.5, 1}, {0.1, 0.2, 0.1, 0.2, 0.1});
  check(Basis(1, {0.1}), {0}, {0.1});
  check(Basis(2, {0.1, 0.2, 0.3}), {0, 0}, {0.1, 0.2});
  CHECK(Basis(6, {0.3, 0.01}).narrowest() == 0.01);
  CHECK(Basis(6, {0.3, 0.01}).cast<float>().means()[2] == 0.5f);
  CHECK_THROWS_WITH(Basis(0, {0.1}), Catch::Matchers::ContainsSubstring("GaussianBasis: 0 func"));
  CHECK_THROWS_AS(Basis(3, {}), std::invalid_argument);
  CHECK_THROWS_AS(Basis(3, {0.1, 0.0}), std::invalid_argument);
  CHECK_THROWS_AS(Basis(3, {-0.1}), std::invalid_argument);
  CHECK_THROWS_AS(Basis(3, {NAN}), std::invalid_argument);
  CHECK_THROWS_AS(Basis(Eigen::ArrayXd::Ones(3), Eigen::ArrayXd::Ones(2)), std::invalid_argument);
  CHECK_THROWS_AS(fw::RectangularBasis<float>(0), std::invalid_argument);
}

TEST_CASE("a slot includes its left edge but not its right edge", "[continuous]") {
  for (const Index slots : {1, 2, 7, 49, 100, 128}) {
    const fw::RectangularBasis<double> basis(slots);
    Eigen::VectorXd psi(slots);
    const auto slot_at = [&](double t) {
      basis.evaluate(t, psi);
      CHECK(psi.sum() == 1);
      Index n = -1;
      psi.maxCoeff(&n);
      return n;
    };
    const auto edge = [&](Index n) { return static_cast<double>(n) / static_cast<double>(slots); };
    for (Index n = 0; n < slots; ++n) {
      INFO("slot " << n << " of " << slots);
      CHECK(slot_at(edge(n)) == n);
      CHECK(slot_at(0.5 * (edge(n) + edge(n + 1))) == n);
      if (n > 0) CHECK(slot_at(edge(n) - 1e-12) == n - 1);
    }
    CHECK(slot_at(1) == slots - 1);
    for (const double t : {-1e-9, 1 + 1e-9, static_cast<double>(NAN)}) {
      basis.evaluate(t, psi);
      CHECK(psi.isZero(0));
    }
  }
}

}  // namespace
