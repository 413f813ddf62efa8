#include <fastweights/feature_maps/chain.hpp>
#include <fastweights/feature_maps/dpfp.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/feature_maps/favor_plus.hpp>
#include <fastweights/feature_maps/identity.hpp>
#include <fastweights/feature_maps/symmetric_power.hpp>
#include <fastweights/feature_maps/taylor.hpp>

#include "support/catch.hpp"
#include "support/reductions.hpp"

/// \file
/// A memory behind a feature map is the memory of keys and queries that were mapped by hand.

namespace {

using fw::Index;
using fw::make_memory;
using laws::random_outputs;

template <class Map>
void is_by_hand(const char* name, fw::MemoryOptions options, const char* plain, const Map& map) {
  INFO(name);
  const auto m = make_memory<double>(name, options);
  const auto all = random_outputs(m, 20, 2);
  const Index features = map.features(options.key_size);
  auto mapped = all;
  mapped.inputs["key"].resize(features, 20);
  mapped.queries["query"].resize(features, 20);
  fw::apply(map, all.inputs["key"], mapped.inputs["key"]);
  fw::apply(map, all.queries["query"], mapped.queries["query"]);
  const auto memory = make_memory<double>(plain, {features, options.value_size});
  const Eigen::MatrixXd y =
      laws::outputs_of(memory, mapped.inputs.matrices, mapped.queries.matrices);
  // Equal up to rounding, since the same map runs on the same columns.
  CHECK(largest_entry(y - all.outputs["output"]) <= 1e-15);
}

TEST_CASE("a feature-mapped memory agrees with applying the map by hand", "[feature_mapped]") {
  is_by_hand("EluPlusOneLinearAttention", {4, 3}, "NormalisedLinearAttention", fw::EluPlusOne());
  is_by_hand("TaylorLinearAttention", {4, 3}, "NormalisedLinearAttention", fw::TaylorMap());
  is_by_hand("SquaredLinearAttention", {4, 3}, "NormalisedLinearAttention",
             fw::SymmetricPower<2>());
  is_by_hand("FavorPlusLinearAttention", {4, 3, {{"features", 6}, {"seed", 3}}},
             "NormalisedLinearAttention", fw::FavorPlus<double>(4, 6, 3));
  is_by_hand("PowerAttention", {4, 3}, "NormalisedGatedAttention", fw::SymmetricPower<2>());
  is_by_hand("DpfpGatedLinearAttention", {5, 3}, "GatedLinearAttention", fw::Dpfp<1>());
  is_by_hand("DpfpDeltaRule", {5, 3}, "DeltaRule", fw::SumNormalised<fw::Dpfp<1>>());
  is_by_hand("L2GatedDeltaRule", {4, 3}, "GatedDeltaRule", fw::L2Normalised<fw::IdentityMap>());
}

TEST_CASE("with a feature map every feature has its own decay", "[feature_mapped]") {
  const auto m = make_memory<double>("DpfpGatedLinearAttention", {4, 3});
  CHECK(m.written()[0].rows == 4);
  CHECK(m.written()[2].name == "decay");
  CHECK(m.written()[2].rows == 8);
}

}  // namespace
