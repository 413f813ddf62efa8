#include <fastweights/feature_maps/symmetric_power.hpp>
#include <fastweights/feature_maps/taylor.hpp>
#include <fastweights/memories/adaptors/feature_mapped.hpp>
#include <fastweights/memories/rules/gated_slot_attention.hpp>
#include <fastweights/memories/rules/hgrn.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>
#include <fastweights/memories/rules/log_linear_attention.hpp>
#include <fastweights/memories/rules/mamba3.hpp>
#include <fastweights/memories/rules/mlstm.hpp>
#include <fastweights/memories/rules/normalised_gated_attention.hpp>
#include <fastweights/memories/rules/selective_scan.hpp>

#include "checks.hpp"

namespace {

template <int D> void check_all(Index d) {
  using S = float;
  check(fw::LogLinearAttention<S, D, D>({d}, 5));
  check(fw::NormalisedGatedAttention<S, D, D>({d}));
  check(fw::NormalisedGatedAttention<S, D, D, fw::KeyValueVectorDecay>({d}), "vector decay");
  check(fw::Mlstm<S, D, D>({d}));
  check(fw::GatedSlotAttention<S, D, D, D>({d}, d));
  check(fw::SelectiveScan<S, D, D>({d}));
  check(fw::Mamba3<S, D, D>({d}));
  check(fw::Hgrn<S, D>(d));
}

template <class M, class Map> void check_mapped(Index d, Map map = {}) {
  check(fw::FeatureMapped<M, Map>(M({map.features(d), d}), d, map));
}

}  // namespace

void check_state_spaces() {
  check_all<3>(3);
  for (const Index d : {3, 64}) check_all<Dynamic>(d);
  for (const Index d : {3, 16}) {
    check_mapped<fw::LinearAttention<float>, fw::TaylorMap>(d);
    check_mapped<fw::NormalisedGatedAttention<float>, fw::SymmetricPower<2>>(d);
  }
}
