#include <fastweights/any_memory/any_memory.hpp>
#include <fastweights/feature_maps/identity.hpp>
#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/memories/adaptors/feature_mapped.hpp>
#include <fastweights/memories/rules/gated_delta_product.hpp>

#include "support/catch.hpp"
#include "support/laws.hpp"

/// \file
/// A memory behind a feature map that is not in the table: with two keys per token.

namespace {

using fw::AnyMemory;
using fw::FeatureMapped;
using fw::Index;
using L2 = fw::L2Normalised<fw::IdentityMap>;

// The keys are short, since the delta rule diverges on long keys that the map does not normalise.
const std::vector<std::pair<Index, Index>> some_sizes = {{3, 3}, {4, 1}, {5, 17}};

template <class S> AnyMemory<S> product(Index d_key, Index dv) {
  using M = fw::GatedDeltaProduct<S>;
  return FeatureMapped<M, L2>(M({d_key, dv}), d_key);
}

TEST_CASE("a feature map of two keys per token obeys the laws", "[laws][feature_mapped]") {
  for (const auto& [d_key, dv] : some_sizes) {
    INFO("d_key = " << d_key << ", d_v = " << dv);
    laws::all(product<double>(d_key, dv));
    laws::float_follows_double(laws::runs_of(product<float>(d_key, dv)),
                               laws::runs_of(product<double>(d_key, dv)));
  }
}

}  // namespace
