#include <fastweights/any_memory/any_memory.hpp>
#include <fastweights/feature_maps/dpfp.hpp>
#include <fastweights/feature_maps/identity.hpp>
#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/memories/adaptors/feature_mapped.hpp>
#include <fastweights/memories/rules/gated_delta_product.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>

#include "support/catch.hpp"
#include "support/memory_laws.hpp"

/// \file
/// Memories behind a feature map that are not in the table: with two keys per token, and with one
/// decay per feature.

namespace {

using fw::AnyMemory;
using fw::Index;

// The keys are short, since the delta rule diverges on long keys that the map does not normalise.
const std::vector<std::pair<Index, Index>> some_sizes = {{3, 3}, {4, 1}, {5, 17}};

template <class M, class Map> AnyMemory<typename M::Scalar> mapped(Index d_key, Index dv) {
  return fw::FeatureMapped<M, Map>(M({Map().features(d_key), dv}), d_key);
}
template <class S> AnyMemory<S> product(Index d_key, Index dv) {
  return mapped<fw::GatedDeltaProduct<S>, fw::L2Normalised<fw::IdentityMap>>(d_key, dv);
}
template <class S> AnyMemory<S> attention(Index d_key, Index dv) {
  return mapped<fw::GatedLinearAttention<S>, fw::SumNormalised<fw::Dpfp<2>>>(d_key, dv);
}

TEST_CASE("a feature map of two keys per token obeys the laws", "[laws][feature_mapped]") {
  for (const auto& [d_key, dv] : some_sizes) {
    INFO("d_key = " << d_key << ", d_v = " << dv);
    laws::all(product<double>(d_key, dv));
    laws::float_follows_double(laws::runs_of(product<float>(d_key, dv)),
                               laws::runs_of(product<double>(d_key, dv)));
  }
}

TEST_CASE("a feature map of a memory with one decay per feature obeys the laws",
          "[laws][feature_mapped]") {
  for (const auto& [d_key, dv] : some_sizes) {
    INFO("d_key = " << d_key << ", d_v = " << dv);
    laws::all(attention<double>(d_key, dv));
    laws::gradients_are_exact(attention<double>(d_key, dv), attention<laws::Complex>(d_key, dv), 9);
  }
}

}  // namespace
