#include "continuous_memories.hpp"

namespace {

using namespace continuous_memories;

TEST_CASE("continuous memory with a Gibbs density over slots obeys the laws",
          "[laws][continuous]") {
  for (const Index slots : {1, 5}) {
    const Slots<double> basis(slots);
    obeys(Gibbs<double>(options<Gibbs<double>>(4, 2, 3, 5), basis, fw::GibbsDensity(basis)));
  }
}

TEST_CASE("continuous memory takes automatic differentiation", "[laws][continuous]") {
  laws::takes_autodiff(memory(4, 2, 3, 5, 6), false);
}

}  // namespace
