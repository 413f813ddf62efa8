// The ridge regression at the published sizes, where the normal equations are nearly singular:
// errors of double against exact results, and of float against double.

#include <fastweights/algorithms/step.hpp>
#include <fastweights/continuous/density.hpp>
#include <fastweights/math/random.hpp>
#include <fastweights/memories/attention/continuous_memory.hpp>

#include "support/catch.hpp"

namespace {

using Eigen::MatrixXd;
using Eigen::MatrixXf;
using fw::Index;
using Basis = fw::GaussianBasis<double>;
template <class S> using Density = fw::MixtureDensity<S, fw::LearnedComponents<S>>;
template <class S> using Memory = fw::ContinuousMemory<S, Density<S>>;

#ifdef NDEBUG
constexpr Index shrink = 1;
#else
constexpr Index shrink = 8;  // a Cholesky of 1024 without optimisation takes a minute
#endif

Memory<double> published(Index functions, const std::vector<double>& widths, Index length) {
  Memory<double>::Options o;
  o.d = 8;
  o.chunk = o.samples = length;
  o.contraction = fw::Contraction::fixed(0.5);
  o.regression.ridge = 1;
  return {o, Basis(functions, widths), Density<double>{fw::LearnedComponents<double>(functions)}};
}

// The relative error of the operator in a few of its rows. The exact rows of G (ΨΨᵀ + λI) = Ψᵀ come
// from iterative refinement with residuals in long double, which is more accurate than double. (A
// Cholesky in long double takes half a minute at N = 1024.)
double operator_error(const Memory<double>& m, Index past, double tau, double ridge = 1) {
  using LongMatrix = Eigen::Matrix<long double, -1, -1>;
  using LongVector = Eigen::Matrix<long double, -1, 1>;
  const auto to = fw::detail::cell_centres(past, m.options().chunk, tau, 0.5);
  const auto g = fw::ridge_operator(m.basis(), to, ridge);
  MatrixXd ours(g.past.rows() + g.new_tokens.rows(), m.basis().size());
  ours << g.past, g.new_tokens;
  std::vector<double> targets = to.past;
  targets.insert(targets.end(), to.new_tokens.begin(), to.new_tokens.end());
  targets.insert(targets.end(), to.zeros.begin(), to.zeros.end());
  const MatrixXd psi = fw::detail::basis_at(m.basis(), targets);
  const LongMatrix exact = psi.cast<long double>();
  MatrixXd gram = ridge * MatrixXd::Identity(psi.rows(), psi.rows());
  gram.selfadjointView<Eigen::Lower>().rankUpdate(psi);
  const Eigen::LLT<MatrixXd> factor(gram);
  double difference = 0, size = 0;
  for (Index i = 0; i < ours.rows(); i += ours.rows() / 5) {
    const LongVector given = ours.row(i).transpose().cast<long double>();
    LongVector x = given;
    const auto residual = [&] {
      return LongVector(exact.col(i) - ridge * x - exact * LongVector(exact.transpose() * x));
    };
    for (int round = 0; round < 4; ++round)
      x += factor.solve(residual().cast<double>().eval()).cast<long double>();
    CHECK(static_cast<double>(residual().norm() / exact.col(i).norm()) <= 1e-14);
    difference += static_cast<double>((x - given).squaredNorm());
    size += static_cast<double>(x.squaredNorm());
  }
  return std::sqrt(difference / size);
}

void check_published(Index functions, const std::vector<double>& widths) {
  const Index length = 512 / shrink;
  const auto m = published(functions / shrink, widths, length);
  const auto narrow = m.cast<float>();
  const double first = operator_error(m, 0, 0), later = operator_error(m, length, 0.5);
  INFO("N " << functions / shrink << ": operators " << first << " and " << later << " from exact");
  CHECK(first <= 1e-7);
  CHECK(later <= 1e-7);
  const double small_ridge = operator_error(m, length, 0.5, 1e-6);
  INFO("with a ridge of 1e-6 " << small_ridge << " from exact");
  CHECK(small_ridge <= 1e-8);

  fw::Random random(1);
  auto state = fw::initial_state(m);
  auto float_state = fw::initial_state(narrow);
  MatrixXd x(8, length);
  for (int chunk = 0; chunk < 3; ++chunk) {
    random.fill(x);
    const MatrixXf rounded = x.cast<float>();
    x = rounded.cast<double>();
    fw::write(m, state, {x});
    fw::write(narrow, float_state, {rounded});
    const MatrixXd difference = float_state.coefficients.cast<double>() - state.coefficients;
    const double coefficients = difference.norm() / state.coefficients.norm();
    const auto to =
        fw::detail::cell_centres(chunk > 0 ? length : 0, length, chunk > 0 ? 0.5 : 0, 0);
    const MatrixXd psi = fw::detail::basis_at(m.basis(), to.new_tokens);
    const double fit = (difference * psi).norm() / (state.coefficients * psi).norm();
    INFO("chunk " << chunk << " in float: coefficients " << coefficients << " and fit " << fit
                  << " from double's");
    // Later chunks also have the errors of earlier chunks.
    CHECK(coefficients <= (chunk == 0 ? 1e-6 : 1e-5));
    CHECK(fit <= 1e-4);
  }
}

TEST_CASE("float against double at the published sizes", "[continuous][ridge]") {
  check_published(512, {0.01, 0.05});
  check_published(1024, {0.005, 0.01});
}

}  // namespace
