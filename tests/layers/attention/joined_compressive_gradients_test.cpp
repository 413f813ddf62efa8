#include "layers/attention/joined_layers.hpp"

namespace {

using namespace joined_layers;

TEST_CASE("JoinedAttention: gradients, streaming, refusals beside a key-value cache, compressive",
          "[layers][joined]") {
  check<Cached, Compressive>(Join::sum);
}

}  // namespace
