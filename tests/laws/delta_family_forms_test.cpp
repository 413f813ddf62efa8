#include <fastweights/memories/rules/comba.hpp>
#include <fastweights/memories/rules/low_rank_rule.hpp>

#include "support/laws.hpp"

namespace {

using fw::KeyValueRemoval;
template <int Dk, int Dv> using Identity = fw::LowRankRule<double, Dk, Dv, KeyValueRemoval>;

TEST_CASE("Comba takes other scalars and fixed sizes", "[laws][comba]") {
  laws::other_forms(fw::Comba<double, 4, 3>(), fw::Comba<double>({4, 3}));
}
TEST_CASE("the low-rank rule takes other scalars and fixed sizes", "[laws][low_rank_rule]") {
  laws::other_forms(fw::LowRankRule<double, 4, 3>(), fw::LowRankRule<double>({4, 3}));
}
TEST_CASE("the low-rank rule without decay obeys the laws", "[laws][low_rank_rule]") {
  laws::every_memory(Identity<-1, -1>({3, 17}));
  laws::gradients_are_exact(Identity<-1, -1>({5, 4}), 6, false);
  laws::other_forms(Identity<4, 3>(), Identity<-1, -1>({4, 3}));
}

}  // namespace
