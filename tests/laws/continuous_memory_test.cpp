#include "support/continuous_memories.hpp"

namespace {

using namespace continuous_memories;

TEST_CASE("continuous memory with even sampling obeys the laws", "[laws][continuous]") {
  obeys(memory(4, 2, 3, 5, 6));
  obeys(memory(3, 1, 1, 1, 1, Contraction::fixed(0.5)));
  obeys(memory(6, 3, 4, 2, 7, Contraction::fixed(0.9)));
  obeys(memory(1, 1, 5, 8, 5));
}

TEST_CASE("continuous memory with several components obeys the laws", "[laws][continuous]") {
  using M = Memory<double>;
  obeys(M(options<M>(4, 2, 3, 5), {6, {0.1, 0.3}}, density(6, 3)));
}

}  // namespace
