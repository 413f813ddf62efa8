#include "support/continuous_memories.hpp"

namespace {

using namespace continuous_memories;

TEST_CASE("continuous memory: fixed and dynamic sizes agree", "[laws][continuous]") {
  const auto dynamic = memory(4, 2, 3, 5, 6);
  using Fixed = Memory<double, EvenSampling, 4>;
  const Fixed fixed(options<Fixed>(4, 2, 3, 5), {6, {0.1, 0.3}}, density(6));
  laws::all(fixed);
  laws::fixed_is_dynamic(fixed, dynamic, false);
}

}  // namespace
