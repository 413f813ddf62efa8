#include "support/continuous_memories.hpp"

/// \file
/// Continuous memory with sticky sampling, and with a density over slots.

namespace {

using namespace continuous_memories;

TEST_CASE("continuous memory with a Gibbs density over slots obeys the laws",
          "[laws][continuous]") {
  for (const Index slots : {1, 5}) {
    const Slots<double> basis(slots);
    obeys(Gibbs<double>(options<Gibbs<double>>(4, 2, 3, 5), basis, fw::GibbsDensity(basis)));
  }
}

TEST_CASE("continuous memory with sticky sampling obeys the laws", "[laws][continuous]") {
  using M = Memory<double, StickySampling>;
  for (const SamplingScheme scheme : {SamplingScheme::stratified, SamplingScheme::published}) {
    auto o = options<M>(4, 2, 3, 5);
    o.sampling = {16, scheme};
    obeys(M(o, {6, {0.1, 0.3}}, density(6)));
  }
}

}  // namespace
