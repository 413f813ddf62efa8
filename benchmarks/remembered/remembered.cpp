// The share of a chunk that a continuous memory keeps, against its age, for script/bench
// remembered: three settings of docs/memories.md. Chunk i sets feature i to 1 and the others to 0,
// so that the largest entry of a feature's coefficients is the share of its chunk that is left.
#include <cstdio>
#include <fastweights/algorithms/step.hpp>
#include <fastweights/continuous/gibbs_density.hpp>
#include <fastweights/memories/attention/continuous_memory.hpp>

namespace {

using fw::Index;
using Density = fw::GibbsDensity<double>;
using Memory = fw::ContinuousMemory<double, Density, fw::RectangularBasis<double>>;

constexpr Index length = 512, chunks = 40, shown = 16;
constexpr auto contraction = [] { return fw::Contraction::fixed(0.75, 10 * length); };

// The share left of the newest chunks, the newest first.
Eigen::VectorXd remembered(const Memory& memory) {
  auto state = fw::initial_state(memory);
  for (Index i = 0; i < chunks; ++i) {
    Eigen::MatrixXd chunk = Eigen::MatrixXd::Zero(chunks, length);
    chunk.row(i).setOnes();
    fw::write(memory, state, {chunk});
  }
  return state.coefficients.rowwise().maxCoeff().reverse();
}

// With the functions of `chosen`, and M and λ of one's own.
Memory with(const Memory& chosen, Index samples, double ridge) {
  Memory::Options options = chosen.options();
  options.samples = samples;
  options.regression.ridge = ridge;
  return {options, chosen.basis(), chosen.density()};
}

}  // namespace

int main() {
  const Memory chosen({.d = chunks, .chunk = length, .contraction = contraction()});
  const Memory memories[] = {chosen, with(chosen, chosen.options().samples, 1), with(chosen, 1, 1)};
  Eigen::MatrixXd shares(chunks, 3);
  std::printf("tokens");
  for (Index i = 0; i < 3; ++i) {
    const Memory& memory = memories[i];
    shares.col(i) = remembered(memory);
    std::printf(",M = %ld ridge %.3g: keeps %ld", static_cast<long>(memory.options().samples),
                memory.options().regression.ridge, static_cast<long>(memory.kept_tokens(length)));
  }
  for (Index age = 0; age < shown; ++age)
    std::printf("\n%ld,%.3f,%.3f,%.3f", static_cast<long>((age + 1) * length), shares(age, 0),
                shares(age, 1), shares(age, 2));
  std::printf("\n");
}
