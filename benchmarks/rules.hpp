#pragma once

#include <fastweights/memories/attention/key_value_cache.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/hebbian.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>
#include <fastweights/memories/rules/programmer1991.hpp>

#include "heads.hpp"

/// \file
/// The rules of the benchmarks. A rule is
///
///     struct Delta {
///       static constexpr const char* name = "delta_rule";
///       static double flops(double d);         // per token, without multiplications by decays
///       static constexpr double passes = 2;    // optional: passes of a step over the state
///       template <class S, int D> static auto memory(Index d);  // D: d or Dynamic
///       // Optional: the rule's equation in plain Eigen, in naive_eigen/.
///       template <class S, int D> static void naive(const Arrays& head);
///       using Ungated = Delta;                 // optional: the same rule without its gate
///     };

namespace measure {

/// Makes heads of a rule's memory. heads_of.hpp defines it.
template <class Rule, class S, int D> struct HeadsOf {
  static HeadsPointer make(Index d, Index steps, Index count);
};

struct Sum {
  static constexpr const char* name = "linear_attention";
  static double flops(double d) { return 4 * d * d; }
  template <class S, int D> static auto memory(Index d) {
    return fw::LinearAttention<S, D, D>({.key_size = d});
  }
  template <class S, int D> static void naive(const Arrays& head);
};

struct NormalisedSum {
  static constexpr const char* name = "linear_attention_normalised";
  static double flops(double d) { return 4 * d * d; }
  template <class S, int D> static auto memory(Index d) {
    return fw::LinearAttention<S, D, D, fw::AttentionNormaliser<S>>({.key_size = d});
  }
};

struct Delta {
  static constexpr const char* name = "delta_rule";
  static double flops(double d) { return 6 * d * d; }
  template <class S, int D> static auto memory(Index d) {
    return fw::DeltaRule<S, D, D>({.key_size = d});
  }
  template <class S, int D> static void naive(const Arrays& head);
};

struct VectorBetaDelta {
  static constexpr const char* name = "delta_rule_vector_beta";
  static double flops(double d) { return 6 * d * d; }
  template <class S, int D> static auto memory(Index d) {
    return fw::DeltaRule<S, D, D, fw::NoNormaliser, fw::KeyValueVectorBeta>({.key_size = d});
  }
};

struct GatedDelta {
  static constexpr const char* name = "gated_delta";
  static double flops(double d) { return 6 * d * d; }
  template <class S, int D> static auto memory(Index d) {
    return fw::GatedDeltaRule<S, D, D>({.key_size = d});
  }
  template <class S, int D> static void naive(const Arrays& head);
  using Ungated = Delta;
};

struct KimiDelta {
  static constexpr const char* name = "kimi_delta";
  static double flops(double d) { return 6 * d * d; }
  template <class S, int D> static auto memory(Index d) {
    return fw::GatedDeltaRule<S, D, D, fw::KeyValueBetaVectorDecay>({.key_size = d});
  }
};

struct GatedSum {
  static constexpr const char* name = "gated_linear_attention";
  static double flops(double d) { return 4 * d * d; }
  template <class S, int D> static auto memory(Index d) {
    return fw::GatedLinearAttention<S, D, D>({.key_size = d});
  }
};

struct Hebbian {
  static constexpr const char* name = "hebbian";
  static double flops(double d) { return 4 * d * d; }
  template <class S, int D> static auto memory(Index d) {
    return fw::HebbianMemory<S, D, D>({.key_size = d});
  }
};

/// The flops leave out the d² activations.
struct Programmer {
  static constexpr const char* name = "programmer1991";
  static double flops(double d) { return 4 * d * d; }
  template <class S, int D> static auto memory(Index d) {
    return fw::Programmer1991<S, D, D>({.key_size = d});
  }
};

/// Holds 1024 tokens; the flops are those of a full cache.
struct Cache {
  static constexpr const char* name = "key_value_cache";
  static constexpr Index capacity = 1024;
  static double flops(double d) { return 4 * d * static_cast<double>(capacity); }
  static constexpr double passes = 1;  // a step writes one token only
  template <class S, int D> static auto memory(Index d) {
    return fw::KeyValueCache<S, D, D>({.key_size = d}, {capacity});
  }
};

}  // namespace measure
