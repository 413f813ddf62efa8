#include <fastweights/memories/rules/delta_rule.hpp>

#include "support/laws.hpp"

/// \file
/// The delta rule with one write strength per row.

namespace {

using fw::Dynamic;
using fw::Index;
template <int Dk, int Dv> using Plain = fw::DeltaRule<double, Dk, Dv>;
template <int Dk, int Dv>
using VectorBeta = fw::DeltaRule<double, Dk, Dv, fw::NoNormaliser, fw::KeyValueVectorBeta>;

static_assert(!fw::Mergeable<VectorBeta<Dynamic, Dynamic>>);

TEST_CASE("delta rule with one write strength per row obeys the laws", "[laws][delta_rule]") {
  laws::at_all_sizes([](Index dk, Index dv) { return VectorBeta<Dynamic, Dynamic>({dk, dv}); });
}

TEST_CASE("equal write strengths per row agree with one write strength", "[delta_rule]") {
  const Plain<Dynamic, Dynamic> one({.key_size = 4, .value_size = 5});
  const VectorBeta<Dynamic, Dynamic> many({.key_size = 4, .value_size = 5});
  fw::Random random(1);
  auto a = fw::testing::random_sequences(one, 12, random);
  Eigen::MatrixXd rows = a.inputs.beta.replicate(5, 1);
  auto s = fw::initial_state(one);
  laws::scan(one, s, a);
  CHECK(laws::output_difference(a, many, {a.inputs.key, a.inputs.value, rows}) <= 1e-14);
}

}  // namespace
