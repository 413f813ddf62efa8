#include <fastweights/feature_maps/favor_plus.hpp>
#include <fastweights/memories/adaptors/amx_scan.hpp>
#include <fastweights/memories/adaptors/deferred.hpp>
#include <fastweights/memories/adaptors/feature_mapped.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>

#include "support/emulated_tiles.hpp"
#include "typed_check.hpp"

// Memories that the table does not have: rules whose sizes are fixed, views that are made of
// columns in the call, a map that is drawn, and the scan by tiles.

namespace {

using fw::Dynamic;

// As users write it: columns of matrices, which convert to views.
template <class M> void check_columns(const M& m, Index d) {
  Eigen::MatrixXf K = Eigen::MatrixXf::Random(d, sequence_length);
  K.colwise().normalize();
  const Eigen::MatrixXf V = K, Q = K;
  const Eigen::VectorXf beta = Eigen::VectorXf::Constant(sequence_length, 0.5f);
  Eigen::MatrixXf Y(d, sequence_length);
  const Usage stepping = usage_of_passes(m, [&](auto& state, Index t) {
    fw::step(m, state, {K.col(t), V.col(t), beta[t]}, {Q.col(t)}, {Y.col(t)});
  });
  const Usage apart = usage_of_passes(m, [&](auto& state, Index t) {
    fw::write(m, state, {K.col(t), V.col(t), beta[t]});
    fw::read(m, state, {Q.col(t)}, {Y.col(t)});
  });
  const Usage checked = usage_of_passes(m, [&](auto& state, Index t) {
    fw::checked_step(m, state, {K.col(t), V.col(t), beta[t]}, {Q.col(t)}, {Y.col(t)});
    if (!fw::all_finite(state)) ++failures;
  });
  report(std::string(M::name) + " columns d " + std::to_string(d), stepping, apart, checked);
}

template <int D> void check_fixed() {
  using Delta = fw::DeltaRule<float, D, D>;
  using Kimi = fw::GatedDeltaRule<float, D, D, fw::KeyValueBetaVectorDecay>;
  check(fw::LinearAttention<float, D, D, fw::AttentionNormaliser<float>>(), "normalised, fixed");
  check(Delta(), "fixed");
  check(Kimi(), "vector decay, fixed");
  check(fw::Deferred<Kimi, 8, float, 4>(Kimi()), "vector decay, with roll back, fixed");
  check_columns(Delta(), D);
}

void check_favor_plus(Index d) {
  using Sum = fw::LinearAttention<float, Dynamic, Dynamic, fw::AttentionNormaliser<float>>;
  using Map = fw::FavorPlus<float>;
  const Map map(d, 2 * d, 1);
  check(fw::FeatureMapped<Sum, Map>(Sum({map.features(d), d}), d, map), "behind FAVOR+");
}

// The scan by tiles allocates only in the first call of a size, even with other sizes in between.
void check_tiles(fw::AmxPrecision precision) {
  const auto scan = [&](Index dk, Index dv, Index steps) {
    using M = fw::DeltaRule<float>;
    const M m({dk, dv});
    fw::Random random(1);
    auto all = fw::testing::random_sequences(m, steps, random);
    auto state = fw::initial_state(m);
    return usage_of([&] {
      fw::detail::tile_scan<EmulatedTiles>(m, state, fw::view<fw::WriteSequence<M>>(all.inputs),
                                           fw::view<fw::ReadSequence<M>>(all.queries),
                                           fw::view<fw::OutSequence<M>>(all.outputs), precision);
    });
  };
  scan(100, 70, 100);
  report(std::string("amx_scan ") + (precision == fw::AmxPrecision::bf16 ? "bf16" : "split"),
         scan(100, 70, 200) + scan(1, 1, 70) + scan(64, 64, 1) + scan(100, 70, 64), {});
}

}  // namespace

void check_typed_memories() {
  check_fixed<3>();
  check_fixed<64>();
  for (const Index d : {3, 64, 256}) check_columns(fw::DeltaRule<float>({.key_size = d}), d);
  for (const Index d : {3, 64}) check_favor_plus(d);
  check_tiles(fw::AmxPrecision::bf16);
  check_tiles(fw::AmxPrecision::split);
}
