// Gradients over ranks against the complex step: with inputs moved by i h d the imaginary part of
// the loss over h is the derivative in the direction d, exact but for rounding.

#include <complex>
#include <fastweights/core/owned.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/mpi/training.hpp>

#include "mpi/memories.hpp"
#include "mpi/parts.hpp"

namespace mpi_test {
namespace {

using Complex = std::complex<double>;
using Rule = fw::GatedDeltaRule<double>;
using ComplexRule = fw::GatedDeltaRule<Complex>;

// Adds i h direction.
template <class To, class From> void move(To& to, const From& from, const From& direction) {
  constexpr double h = 1e-30;
  fw::for_each_leaf(
      [&](auto& z, const auto& x, const auto& d) {
        z = x.template cast<Complex>() + Complex(0, h) * d.template cast<Complex>();
      },
      to, from, direction);
}
template <class A> double product(const A& a, const A& b) {
  double sum = 0;
  fw::for_each_leaf([&](const auto& x, const auto& y) { sum += x.cwiseProduct(y).sum(); }, a, b);
  return sum;
}

}  // namespace

void check_complex_step() {
  constexpr Index heads = 2;
  const fw::mpi::Ranks ranks(MPI_COMM_WORLD);
  const Rule m(sizes);
  const auto z = m.cast<Complex>();
  const auto seed = static_cast<std::uint64_t>(ranks.rank() + 1);
  fw::Random random(seed);
  const Index steps = heads * (2 + static_cast<Index>(random.below(4)));
  auto tokens = fw::testing::random_sequences(m, steps, random),
       directions = fw::testing::random_sequences(m, steps, random),
       gradients = fw::testing::random_sequences(m, steps, random);
  fw::for_each_leaf([](auto& array) { array.setZero(); }, gradients);
  fw::for_each_leaf([&](auto& array) { random.fill(array); }, directions.outputs);  // dy

  std::vector states(heads, fw::initial_state(m)), ds(states);
  std::vector<fw::Checkpoints<Rule>> checkpoints(heads);
  const auto inputs = fw::view<fw::WriteSequence<Rule>>(tokens.inputs);
  const auto queries = fw::view<fw::ReadSequence<Rule>>(tokens.queries);
  fw::mpi::scan(m, std::span(states), inputs, queries,
                fw::view<fw::OutSequence<Rule>>(tokens.outputs), std::span(checkpoints),
                MPI_COMM_WORLD);
  fw::mpi::backward(m, std::span(checkpoints), inputs, queries,
                    fw::view<fw::OutGradSequence<Rule>>(directions.outputs), std::span(ds),
                    fw::view<fw::WriteGradSequence<Rule>>(gradients.inputs),
                    fw::view<fw::ReadGradSequence<Rule>>(gradients.queries), MPI_COMM_WORLD);
  const double derivative = fw::mpi::sum(
      product(gradients.inputs, directions.inputs) + product(gradients.queries, directions.queries),
      MPI_COMM_WORLD);

  auto moved = fw::testing::random_sequences(z, steps, random);
  move(moved.inputs, tokens.inputs, directions.inputs);
  move(moved.queries, tokens.queries, directions.queries);
  std::vector zstates(heads, fw::initial_state(z));
  fw::mpi::scan(z, std::span(zstates), fw::view<fw::WriteSequence<ComplexRule>>(moved.inputs),
                fw::view<fw::ReadSequence<ComplexRule>>(moved.queries),
                fw::view<fw::OutSequence<ComplexRule>>(moved.outputs), MPI_COMM_WORLD);
  const double exact =
      fw::mpi::sum(moved.outputs.output.imag().cwiseProduct(directions.outputs.output).sum(),
                   MPI_COMM_WORLD) *
      1e30;
  const double error = std::abs(derivative / exact - 1);
  if (ranks.is_first())
    std::printf("mpi gradients of the gated delta rule, %d ranks: %.1e from the complex step\n",
                ranks.size(), error);
  expect(error <= 1e-12, "the derivative of the complex step");
}

}  // namespace mpi_test
