#pragma once

#include "flops.hpp"
#include "heads.hpp"

/// \file
/// The rules of the benchmarks.

namespace measure {

/// The rule's equation in plain Eigen, over all tokens of a head.
using Naive = void (*)(const Arrays& head);

struct Rule {
  const char* name;               ///< in the names of benchmarks
  const char* memory;             ///< in the table; see fw::make_memory
  Flops flops;                    ///< without multiplications by decays
  double passes = 2;              ///< of a step over the state
  const char* ungated = nullptr;  ///< the memory without its gate
  /// The naive expression of a scalar and size, or Dynamic; null if there is none of this size.
  Naive (*naive)(bool is_double, Index d) = nullptr;
};

Naive naive_sum(bool is_double, Index d);
Naive naive_delta(bool is_double, Index d);
Naive naive_gated_delta(bool is_double, Index d);

/// The memory of dynamic size with this name.
MakeHeads dynamic_heads(const char* memory, bool is_double = false);
/// The memory of fixed size in float, for the sizes of the table; empty for others.
MakeHeads fixed_heads(const char* memory, Index d);

inline constexpr Rule sum{.name = "linear_attention",
                          .memory = "LinearAttention",
                          .flops = {.squares = 4},
                          .naive = naive_sum};
inline constexpr Rule normalised_sum{.name = "linear_attention_normalised",
                                     .memory = "NormalisedLinearAttention",
                                     .flops = {.squares = 4}};
inline constexpr Rule delta{
    .name = "delta_rule", .memory = "DeltaRule", .flops = {.squares = 6}, .naive = naive_delta};
inline constexpr Rule vector_beta_delta{
    .name = "delta_rule_vector_beta", .memory = "VectorDeltaRule", .flops = {.squares = 6}};
inline constexpr Rule gated_delta{.name = "gated_delta",
                                  .memory = "GatedDeltaRule",
                                  .flops = {.squares = 6},
                                  .ungated = "DeltaRule",
                                  .naive = naive_gated_delta};
inline constexpr Rule kimi_delta{
    .name = "kimi_delta", .memory = "KimiDeltaAttention", .flops = {.squares = 6}};
inline constexpr Rule gated_sum{
    .name = "gated_linear_attention", .memory = "GatedLinearAttention", .flops = {.squares = 4}};
inline constexpr Rule hebbian{
    .name = "hebbian", .memory = "HebbianMemory", .flops = {.squares = 4}};
/// The flops leave out the d² activations.
inline constexpr Rule programmer{
    .name = "programmer1991", .memory = "Programmer1991", .flops = {.squares = 4}};
/// Holds 1024 tokens; the flops are those of a full cache. A step writes one token only.
inline constexpr Rule cache{.name = "key_value_cache",
                            .memory = "KeyValueCache",
                            .flops = {.lines = 4 * 1024},
                            .passes = 1};

}  // namespace measure
