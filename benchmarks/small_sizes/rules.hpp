#pragma once

#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/hebbian.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>

/// \file
/// Rules for the comparison at small sizes: a memory of d×d with `D` = d or Dynamic, and `token`,
/// one token as a user writes it in Eigen.

namespace small_sizes {

using Eigen::Dynamic;
using Eigen::Index;

/// Data of the hand-written loop: the state, a temporary and the sequence of a head. The
/// inputs of all rules are here; each uses its own.
template <class S, int D> struct Sequence {
  static constexpr Index tokens = 64;
  Eigen::Matrix<S, D, D> W;
  Eigen::Matrix<S, D, 1> u;
  Eigen::Matrix<S, D, Dynamic> keys, values, queries, decays, outputs;
  Eigen::Matrix<S, Dynamic, 1> betas, decay;

  explicit Sequence(Index d) : W(d, d), u(d), outputs(d, tokens) {
    std::srand(1);  // which Eigen's random numbers use
    keys.setRandom(d, tokens).colwise().normalize();
    values.setRandom(d, tokens);
    queries.setRandom(d, tokens);
    decays.setConstant(d, tokens, S(0.95));
    betas.setConstant(tokens, S(0.5));
    decay.setConstant(tokens, S(0.95));
    W.setZero();
  }
};

template <class S, int D> struct Sum {
  using Sequence = small_sizes::Sequence<S, D>;
  using Memory = fw::LinearAttention<S, D>;
  static auto inputs(const Sequence& s) { return fw::WriteSequence<Memory>{s.keys, s.values}; }
  static auto input(const Sequence& s, Index t) {
    return fw::WriteToken<Memory>{s.keys.col(t), s.values.col(t)};
  }
  static EIGEN_ALWAYS_INLINE void token(Sequence& s, Index t) {
    s.W.noalias() += s.values.col(t) * s.keys.col(t).transpose();
    s.outputs.col(t).noalias() = s.W * s.queries.col(t);
  }
};

template <class S, int D> struct Hebbian {
  using Sequence = small_sizes::Sequence<S, D>;
  using Memory = fw::HebbianMemory<S, D>;
  static auto inputs(const Sequence& s) { return fw::WriteSequence<Memory>{s.keys, s.values}; }
  static auto input(const Sequence& s, Index t) {
    return fw::WriteToken<Memory>{s.keys.col(t), s.values.col(t)};
  }
  static EIGEN_ALWAYS_INLINE void token(Sequence& s, Index t) {
    s.W *= S(0.95);
    s.u = S(0.5) * s.values.col(t);
    s.W.noalias() += s.u * s.keys.col(t).transpose();
    s.outputs.col(t).noalias() = s.W * s.queries.col(t);
  }
};

template <class S, int D> struct GatedSum {
  using Sequence = small_sizes::Sequence<S, D>;
  using Memory = fw::GatedLinearAttention<S, D>;
  static auto inputs(const Sequence& s) {
    return fw::WriteSequence<Memory>{s.keys, s.values, s.decays};
  }
  static auto input(const Sequence& s, Index t) {
    return fw::WriteToken<Memory>{s.keys.col(t), s.values.col(t), s.decays.col(t)};
  }
  static EIGEN_ALWAYS_INLINE void token(Sequence& s, Index t) {
    s.W *= s.decays.col(t).asDiagonal();
    s.W.noalias() += s.values.col(t) * s.keys.col(t).transpose();
    s.outputs.col(t).noalias() = s.W * s.queries.col(t);
  }
};

template <class S, int D> struct Delta {
  using Sequence = small_sizes::Sequence<S, D>;
  using Memory = fw::DeltaRule<S, D>;
  static auto inputs(const Sequence& s) {
    return fw::WriteSequence<Memory>{s.keys, s.values, s.betas};
  }
  static auto input(const Sequence& s, Index t) {
    return fw::WriteToken<Memory>{s.keys.col(t), s.values.col(t), s.betas[t]};
  }
  static EIGEN_ALWAYS_INLINE void token(Sequence& s, Index t) {
    s.u.noalias() = s.W * s.keys.col(t);
    s.u = s.betas[t] * (s.values.col(t) - s.u);
    s.W.noalias() += s.u * s.keys.col(t).transpose();
    s.outputs.col(t).noalias() = s.W * s.queries.col(t);
  }
};

template <class S, int D> struct GatedDelta {
  using Sequence = small_sizes::Sequence<S, D>;
  using Memory = fw::GatedDeltaRule<S, D>;
  static auto inputs(const Sequence& s) {
    return fw::WriteSequence<Memory>{s.keys, s.values, s.betas, s.decay};
  }
  static auto input(const Sequence& s, Index t) {
    return fw::WriteToken<Memory>{s.keys.col(t), s.values.col(t), s.betas[t], s.decay[t]};
  }
  static EIGEN_ALWAYS_INLINE void token(Sequence& s, Index t) {
    s.W *= s.decay[t];
    s.u.noalias() = s.W * s.keys.col(t);
    s.u = s.betas[t] * (s.values.col(t) - s.u);
    s.W.noalias() += s.u * s.keys.col(t).transpose();
    s.outputs.col(t).noalias() = s.W * s.queries.col(t);
  }
};

}  // namespace small_sizes
