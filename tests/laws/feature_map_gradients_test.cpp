#include <fastweights/feature_maps/dpfp.hpp>
#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/feature_maps/symmetric_power.hpp>
#include <fastweights/memories/adaptors/feature_mapped.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/normalised_gated_attention.hpp>
#include <fastweights/testing/gradient_check.hpp>

#include "support/catch.hpp"

/// \file
/// Gradients of memories behind feature maps that are not in the table: a map of a map, and the
/// fourth power.

namespace {

using fw::FeatureMapped;
using fw::Index;

template <class M> void has_exact_gradients(const M& m, Index steps, bool positive = false) {
  const auto error = fw::testing::gradient_error(m, steps, 8, positive);
  INFO(M::name << ": worst in " << error.where);
  CHECK(error.worst <= 1e-10);
}

TEST_CASE("gradients behind a map of a map, and behind the fourth power, are exact",
          "[laws][feature_mapped]") {
  using Sum = fw::GatedLinearAttention<double>;
  using Once = FeatureMapped<Sum, fw::Dpfp<2>>;
  using Power = fw::NormalisedGatedAttention<double>;
  for (const auto& [d_key, dv] : {std::pair<Index, Index>{3, 3}, {4, 1}, {5, 17}})
    has_exact_gradients(
        FeatureMapped<Once, fw::L2Normalise>(Once(Sum({4 * d_key, dv}), d_key), d_key), 9);
  has_exact_gradients(FeatureMapped<Power, fw::SymmetricPower<4>>(Power({15, 4}), 3), 6, true);
}

}  // namespace
