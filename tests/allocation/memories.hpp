#pragma once

/// The memories of one size. D is the size if it is fixed at compile time.

#include <fastweights/fastweights.hpp>

#include "checks.hpp"

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
  report(label(m, "columns"), stepping, apart);
  const Usage checked = usage_of_passes(m, [&](auto& state, Index t) {
    fw::checked_step(m, state, {K.col(t), V.col(t), beta[t]}, {Q.col(t)}, {Y.col(t)});
    if (!fw::all_finite(state)) ++failures;
  });
  report(label(m, "columns, checked"), checked, {});
}

template <int D> void check_deferred(Index d) {
  using Delta = fw::DeltaRule<float, D, D>;
  using Gated = fw::GatedDeltaRule<float, D, D, fw::KeyValueBetaVectorDecay>;
  check(fw::Deferred(Delta({.key_size = d})));
  check(fw::Deferred<Delta, 8, float, 4>(Delta({.key_size = d})), "with roll back");
  check(fw::Deferred<Delta, 8, Eigen::bfloat16>(Delta({.key_size = d})), "bfloat16");
  check(fw::Deferred<Delta, 8, std::int8_t>(Delta({.key_size = d})), "8 bits");
  check(fw::Deferred(Gated({.key_size = d})), "vector decay");
  check(fw::Deferred<Gated, 8, float, 4>(Gated({.key_size = d})), "vector decay, with roll back");
}

template <int D> void check_memories(Index d) {
  using S = float;
  using fw::KeyValueVectorBeta, fw::NoNormaliser, fw::WhenFull;
  using Normaliser = fw::AttentionNormaliser<S>;
  using Cache = fw::KeyValueCache<S, D, D>;
  check(fw::LinearAttention<S, D, D>({.key_size = d}));
  check(fw::LinearAttention<S, D, D, Normaliser>({.key_size = d}), "normalised");
  check(fw::DeltaRule<S, D, D>({.key_size = d}));
  check_columns(fw::DeltaRule<S, D, D>({.key_size = d}), d);
  check(fw::DeltaRule<S, D, D, Normaliser>({.key_size = d}), "normalised");
  check(fw::DeltaRule<S, D, D, NoNormaliser, KeyValueVectorBeta>({.key_size = d}), "vector beta");
  check(fw::DeltaRule<S, D, D, Normaliser, KeyValueVectorBeta>({.key_size = d}),
        "normalised, vector beta");
  check(fw::GatedLinearAttention<S, D, D>({.key_size = d}));
  check(fw::GatedLinearAttention<S, D, D, fw::KeyValueDecay>({.key_size = d}), "one decay");
  check(fw::GatedDeltaRule<S, D, D>({.key_size = d}));
  check(fw::GatedDeltaRule<S, D, D, fw::KeyValueBetaVectorDecay>({.key_size = d}), "vector decay");
  check(fw::HebbianMemory<S, D, D>({.key_size = d}));
  check_deferred<D>(d);
  check(fw::FastWeightMemory<S, D, D>({.key_size = d}));
  check(fw::Programmer1991<S, D, D, fw::Relu>({.key_size = d}));
  check(Cache({.key_size = d}, {sequence_length / 2, WhenFull::slide}), "sliding");
  check(Cache({.key_size = d}, {sequence_length, WhenFull::refuse}), "refusing");
}

template <int D> void check_recurrent_memories(Index d) {
  check(fw::DeltaRnn<float, D, D>({.key_size = d}));
  check(fw::DeltaLstm<float, D, D>({.key_size = d}));
  check(fw::RecurrentDeltaNet<float, D, D>({.key_size = d}));
  check(fw::SelfReferentialMatrix<float, D, D>({.key_size = d}));
}
