#include "continuous_memories.hpp"

namespace {

using namespace continuous_memories;

TEST_CASE("continuous memory, sampled where it was read, obeys the laws", "[laws][continuous]") {
  using M = Memory<double, StickySampling>;
  for (const Draws draws : {Draws::stratified, Draws::published}) {
    auto o = options<M>(4, 2, 3, 5);
    o.sampling = {16, draws};
    obeys(M(o, {6, {0.1, 0.3}}, density(6)));
  }
}

}  // namespace
