#include "layers/attention/joined_layers.hpp"

namespace {

using namespace joined_layers;

TEST_CASE("JoinedAttention: gradients, streaming, refusals beside a key-value cache",
          "[layers][joined]") {
  check<Cached, Sticky>(Join::alpha);
}

}  // namespace
