#include <cmath>

#include "layout.hpp"

namespace reference {

namespace {

// 1 − 2^(−5 − h), as every head of a retentive network has it.
double retention(double head) { return 1 - std::exp2(-5 - head); }

}  // namespace

MemoryCases memory_cases() {
  return {
      {"linear_attn", {"LinearAttention"}},
      {"linear_attn_normalized",
       {"NormalisedLinearAttention",
        {.state = {{"W", {"initial_state", "final_state"}},
                   {"normaliser.sum", {"initial_z", "final_z"}}}},
        {{"epsilon", {1e-10}}}}},
      {"delta_rule", {"DeltaRule"}},
      {"delta_rule_sumnorm_keys", {"DeltaRule"}},
      {"delta_rule_vector_beta", {"VectorDeltaRule"}},
      // Retention is Hebbian memory with a different decay for every head.
      {"retention", {"HebbianMemory", {}, {{"decay", {.of_head = retention}}, {"rate", {1}}}}},
      {"simple_gla", {"SimpleGatedLinearAttention"}},
      {"gla", {"GatedLinearAttention", {.inputs = {{"decay", "gk"}}}}},
      {"gated_delta_rule", {"GatedDeltaRule"}},
      {"kda", {"KimiDeltaAttention"}},
      // Groups of value heads share the keys and queries of a head.
      {"gated_delta_rule_grouped_l2", {"GatedDeltaRule", {.normalise = 1e-6}}},
      {"kda_grouped", {"KimiDeltaAttention"}},
      {"idsia_delta_net_core",
       {"DeltaRule",
        {.state = {{"W", {"W0", "final_W", /*key_major=*/false}}}, .scales_query = false}}},
  };
}

}  // namespace reference
