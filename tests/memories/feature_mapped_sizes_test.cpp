#include <fastweights/feature_maps/dpfp.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/memories/adaptors/feature_mapped.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>

#include "support/laws.hpp"

namespace {

using Delta = fw::DeltaRule<double>;
using Gated = fw::GatedLinearAttention<double>;
using DpfpSum = fw::SumNormalised<fw::Dpfp<2>>;
template <int Dk> using FixedDelta = fw::DeltaRule<double, Dk, 3>;

TEST_CASE("feature-mapped memories: fixed and dynamic sizes agree", "[laws][feature_mapped]") {
  using fw::EluPlusOne, fw::FeatureMapped;
  const FeatureMapped<Delta, EluPlusOne> dynamic(Delta({.key_size = 4, .value_size = 3}), 4);
  const FeatureMapped<FixedDelta<4>, EluPlusOne, 4> fixed(FixedDelta<4>(), 4);
  const FeatureMapped<FixedDelta<4>, EluPlusOne> fixed_memory(FixedDelta<4>(), 4);
  const FeatureMapped<Delta, EluPlusOne, 4> fixed_keys(Delta({.key_size = 4, .value_size = 3}), 4);
  laws::fixed_is_dynamic(fixed, dynamic, false);
  laws::fixed_is_dynamic(fixed_memory, dynamic, false);
  laws::fixed_is_dynamic(fixed_keys, dynamic, false);
  const FeatureMapped<FixedDelta<16>, DpfpSum, 4> dpfp(FixedDelta<16>(), 4);
  laws::fixed_is_dynamic(
      dpfp, FeatureMapped<Delta, DpfpSum>(Delta({.key_size = 16, .value_size = 3}), 4), false);
}

TEST_CASE("with a feature map every feature has its own decay", "[feature_mapped]") {
  using Dpfp = fw::Dpfp<2>;
  const fw::FeatureMapped<Gated, Dpfp> dynamic(Gated({.key_size = 16, .value_size = 3}), 4);
  using FixedGated = fw::GatedLinearAttention<double, 16, 3>;
  const fw::FeatureMapped<FixedGated, Dpfp, 4> fixed(FixedGated(), 4);
  CHECK(dynamic.signature().write().key.rows == 4);
  CHECK(dynamic.signature().write().decay.rows == 16);
  static_assert(decltype(fw::WriteToken<decltype(fixed)>::key)::RowsAtCompileTime == 4);
  static_assert(decltype(fw::WriteToken<decltype(fixed)>::decay)::RowsAtCompileTime == 16);
  laws::gradients_are_exact(dynamic, 9, false);
  laws::wrong_sizes_are_refused(laws::runs_of(dynamic, false));
  laws::fixed_is_dynamic(fixed, dynamic, false);

  const fw::FeatureMapped<decltype(dynamic), fw::L2Normalise> twice(dynamic, 4);
  CHECK(twice.signature().write().decay.rows == 16);
  laws::gradients_are_exact(twice, 9, false);
}

}  // namespace
