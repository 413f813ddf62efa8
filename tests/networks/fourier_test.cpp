#include <fastweights/networks/operations/fourier.hpp>

#include "networks/operation_checks.hpp"

namespace {

using namespace fw::networks;
using namespace operation_checks;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("Fourier transforms of frames: gradients and streaming", "[networks]") {
  for (const Index n : {2, 4, 6, 16, 18}) {
    INFO("n " << n);
    check_operation(2 * n, [&](const auto& x) { return real_fourier(x, n); });
    check_operation(n + 2, [&](const auto& x) { return inverse_real_fourier(x, n); });
  }
}

Matrix<double> output(const Net& network, const Matrix<double>& x) {
  State state = network.initial_state();
  Net::Trace trace;
  return run(network, state, x, trace);
}

TEST_CASE("a spectrum is the sum of its definition, and the inverse gives the frame back",
          "[networks]") {
  constexpr double pi = 3.14159265358979323846;
  fw::Random random(3);
  for (const Index n : {2, 10, 64, 126, 512}) {
    const Net forward = network_of(n, [&](const auto& x) { return real_fourier(x, n); });
    const Net both = network_of(
        2 * n, [&](const auto& x) { return inverse_real_fourier(real_fourier(x, n), n); });
    const Matrix<double> x = random_matrix(2 * n, 3, random);
    const Matrix<double> y = output(forward, x.topRows(n));
    Matrix<double> sums = Matrix<double>::Zero(n + 2, 3);
    for (Index k = 0; k <= n / 2; ++k)
      for (Index i = 0; i < n; ++i) {
        const double angle = 2 * pi * double(k * i % n) / double(n);
        sums.row(k) += std::cos(angle) * x.row(i);
        sums.row(n / 2 + 1 + k) -= std::sin(angle) * x.row(i);
      }
    CHECK(largest_entry(y - sums) <= 1e-12 * largest_entry(sums));
    CHECK(largest_entry(output(both, x) - x) <= 1e-13);
  }
}

TEST_CASE("Fourier transforms refuse odd frames and parts of frames", "[networks]") {
  Builder<double> builder;
  const auto x = builder.input(12);
  CHECK_THROWS_WITH(real_fourier(x, 3), ContainsSubstring("frames of 3 numbers"));
  CHECK_THROWS_WITH(real_fourier(x, 0), ContainsSubstring("frames of 0 numbers"));
  CHECK_THROWS_WITH(real_fourier(x, 8), ContainsSubstring("expected a multiple of 8"));
  CHECK_THROWS_WITH(inverse_real_fourier(x, 6), ContainsSubstring("expected a multiple of 8"));
}

}  // namespace
