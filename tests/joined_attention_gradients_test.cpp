#include "joined_layers.hpp"

namespace {

using namespace joined_layers;

TEST_CASE("JoinedAttention: gradients, streaming, refusals beside relative attention",
          "[layers][joined]") {
  check<Relative, Even>(Join::sum);
  check<Relative, Even>(Join::alpha);
}

}  // namespace
