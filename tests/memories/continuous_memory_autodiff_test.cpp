#include "support/continuous_memories.hpp"

namespace {

using namespace continuous_memories;

TEST_CASE("continuous memory supports automatic differentiation", "[laws][continuous]") {
  laws::takes_autodiff(memory(4, 2, 3, 5, 6), false);
}

}  // namespace
