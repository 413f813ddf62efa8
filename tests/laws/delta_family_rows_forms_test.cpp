#include <fastweights/memories/rules/gated_oja_rule.hpp>
#include <fastweights/memories/rules/longhorn.hpp>
#include <fastweights/memories/rules/rwkv6.hpp>

#include "support/laws.hpp"

namespace {

using fw::LonghornForm;
template <int Dk, int Dv> using Exact = fw::Longhorn<double, Dk, Dv, LonghornForm::exact>;

TEST_CASE("the gated Oja rule takes other scalars and fixed sizes", "[laws][gated_oja_rule]") {
  laws::other_forms(fw::GatedOjaRule<double, 4, 3>(), fw::GatedOjaRule<double>({4, 3}));
}
TEST_CASE("Longhorn takes other scalars and fixed sizes", "[laws][longhorn]") {
  laws::other_forms(fw::Longhorn<double, 4, 3>(), fw::Longhorn<double>({4, 3}));
  laws::other_forms(Exact<4, 3>(), Exact<-1, -1>({4, 3}));
}
TEST_CASE("RWKV-6 takes other scalars and fixed sizes", "[laws][rwkv6]") {
  laws::other_forms(fw::Rwkv6<double, 4, 3>(), fw::Rwkv6<double>({4, 3}));
}

}  // namespace
