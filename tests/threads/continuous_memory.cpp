#include <fastweights/algorithms/step.hpp>
#include <fastweights/continuous/gibbs_density.hpp>
#include <fastweights/memories/attention/continuous_memory.hpp>

#include "together.hpp"

namespace {

using Basis = fw::RectangularBasis<float>;
template <class Sampling>
using Memory = fw::ContinuousMemory<float, fw::GibbsDensity<float>, Basis, Sampling>;

template <class Sampling> Memory<Sampling> memory(fw::Contraction contraction) {
  typename Memory<Sampling>::Options o;
  o.d = 4;
  o.chunk = 3;
  o.samples = 5;
  o.contraction = contraction;
  o.regression.ridge = 1;
  return Memory<Sampling>(o, Basis(6), fw::GibbsDensity<float>(Basis(6)));
}

// Chunks of 1 to 3 tokens, each followed by a read.
template <class M> MatrixXf stream(const M& m, int writes) {
  const MatrixXf x = random_matrix(4, 3, 1), query = random_matrix(4, 2, 2);
  const MatrixXf draws = MatrixXf::Constant(1, 5, 0.3f);
  MatrixXf out(4, 2 * writes);
  auto state = fw::initial_state(m);
  for (int i = 0; i < writes; ++i) {
    const auto chunk = x.leftCols(1 + i % 3);
    if constexpr (M::sticky)
      fw::write(m, state, {chunk, draws});
    else
      fw::write(m, state, {chunk});
    fw::read(m, state, {query}, {out.middleCols(2 * i, 2)});
  }
  return out;
}

}  // namespace

void check_continuous_memory() {
  using fw::Contraction, fw::EvenSampling, fw::StickySampling;
  const auto even = memory<EvenSampling>(Contraction::even());
  check_same("ContinuousMemory: 300 operators, in the cache and beyond", [&](int i) {
    const auto copy = even;  // copies share the cache
    return stream(i % 2 ? copy : even, 300);
  });
  const auto sticky = memory<StickySampling>(Contraction::fixed(0.7));
  check_same("ContinuousMemory, sticky", [&](int) { return stream(sticky, 100); });
  const auto limited = memory<EvenSampling>(Contraction::even(200));
  check_same("ContinuousMemory, prepared by every thread", [&](int i) {
    limited.prepare(1 + i % 3);
    return stream(limited, 100);
  });
  // The last copy of a cache may end in any thread.
  check_same("ContinuousMemory, copies that end while others are used", [&](int i) {
    for (int round = 0; round < 20; ++round) {
      auto copy = memory<EvenSampling>(Contraction::even());
      if (i % 2) copy = even;
      const auto moved = std::move(copy);
      stream(moved, 3);
    }
    return stream(even, 10);
  });
}
