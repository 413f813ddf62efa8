#include <fastweights/algorithms/step.hpp>
#include <numbers>
#include <report/experiments/signal_place.hpp>

#include "support/catch.hpp"

namespace {

using fw::Index;

// Follows one token through the writes, as ContinuousMemory makes them: a new chunk onto [τ, 1],
// what lay at t to τ t.
double followed(const fw::Contraction& contraction, Index chunks, Index age, double within) {
  double place = 0;
  for (Index k = 0; k < chunks; ++k) {
    const double even = static_cast<double>(k) / static_cast<double>(k + 1);
    const double tau = k == 0 ? 0 : contraction.tau > 0 ? contraction.tau : even;
    place = k == chunks - age ? tau + (1 - tau) * within : tau * place;
  }
  return place;
}

double wave(Index token) {
  return std::sin(2 * std::numbers::pi / 40 * static_cast<double>(token));
}

// The coefficients of a wave of 40 tokens that a memory has read in chunks.
template <class Memory> auto wave_read(const Memory& memory, Index chunks) {
  const Index length = memory.options().chunk;
  auto state = fw::initial_state(memory);
  Eigen::MatrixXd x(1, length);
  for (Index k = 0; k < chunks; ++k) {
    for (Index l = 0; l < length; ++l) x(l) = wave(k * length + l);
    fw::write(memory, state, {x});
  }
  return state.coefficients;
}

}  // namespace

TEST_CASE("signal_place: where a token has come to lie", "[long_context]") {
  for (const auto& contraction : {fw::Contraction::even(), fw::Contraction::fixed(0.75)})
    for (const Index chunks : {1, 2, 3, 7})
      for (Index age = 1; age <= chunks; ++age)
        for (const double within : {0.1, 0.5, 0.9}) {
          CAPTURE(contraction.tau, chunks, age, within);
          CHECK(std::abs(signal_place(contraction, chunks, age, within) -
                         followed(contraction, chunks, age, within)) < 1e-15);
        }
}

TEST_CASE("signal_place: there the memory's signal is the token", "[long_context]") {
  using Density = fw::MixtureDensity<double, fw::MatchedComponent<double>>;
  constexpr Index length = 64, chunks = 3;
  const fw::GaussianBasis<double> basis(128, {0.01});
  for (const auto& contraction : {fw::Contraction::even(), fw::Contraction::fixed(0.6)}) {
    const fw::ContinuousMemory<double, Density> memory({.d = 1,
                                                        .chunk = length,
                                                        .samples = 256,
                                                        .contraction = contraction,
                                                        .regression = {.ridge = 1}},
                                                       basis, {});
    const auto coefficients = wave_read(memory, chunks);
    Eigen::VectorXd psi(basis.size());
    for (Index age = 1; age <= chunks; ++age)
      for (Index l = length / 4; l < 3 * length / 4; ++l) {  // away from the seams of chunks
        const double within = (static_cast<double>(l) + 0.5) / static_cast<double>(length);
        basis.evaluate(signal_place(contraction, chunks, age, within), psi);
        CAPTURE(contraction.tau, age, l);
        CHECK(std::abs((coefficients * psi).value() - wave((chunks - age) * length + l)) < 0.02);
      }
  }
}
