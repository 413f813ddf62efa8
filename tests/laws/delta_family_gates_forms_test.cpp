#include <fastweights/memories/rules/gated_delta_product.hpp>
#include <fastweights/memories/rules/gated_delta_rule_2.hpp>
#include <fastweights/memories/rules/titans_memory.hpp>

#include "support/laws.hpp"

namespace {

TEST_CASE("the gated DeltaProduct takes other scalars and fixed sizes",
          "[laws][gated_delta_product]") {
  laws::other_forms(fw::GatedDeltaProduct<double, 2, 4, 3>(),
                    fw::GatedDeltaProduct<double, 2>({4, 3}));
}
TEST_CASE("the second gated delta rule takes other scalars and fixed sizes",
          "[laws][gated_delta_rule_2]") {
  laws::other_forms(fw::GatedDeltaRule2<double, 4, 3>(), fw::GatedDeltaRule2<double>({4, 3}));
}
TEST_CASE("the memory of Titans takes other scalars and fixed sizes", "[laws][titans]") {
  laws::other_forms(fw::TitansMemory<double, 4, 3>(), fw::TitansMemory<double>({4, 3}));
}

}  // namespace
