#include "networks/long_term_layers.hpp"

namespace {

using namespace long_term;

TEST_CASE("long-term attention behind an affine gate", "[networks]") { check(affine_gate); }
TEST_CASE("long-term attention with a compressive memory", "[networks]") {
  check(compressive);
  check(pooling);
}

}  // namespace
