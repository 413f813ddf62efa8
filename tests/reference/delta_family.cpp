#include "layout.hpp"

namespace reference {

MemoryCases delta_family_cases() {
  // Files of our own: states [B, H, d_v, d_k], queries as they are.
  const Layout own = {.state = {{"W", {"W0", "final_W", /*key_major=*/false}}},
                      .scales_query = false};
  const Layout preconditioned = {.inputs = {{"moment_beta", "beta_atk"}, {"moment_decay", "g_atk"}},
                                 .logarithms = {"decay", "moment_decay"},
                                 .state = {{"W", {"initial_state", "final_state"}},
                                           {"A", {"initial_A_state", "final_A_state"}}},
                                 .slow = {{"slow.log_scale", {"log_atk_scale"}}}};
  Layout normalised = preconditioned;
  normalised.normalise = 0;
  const Layout momentum = {
      .inputs = {{"lookup", "p"}, {"rate", "eta"}, {"momentum", "log_mu"}, {"decay", "log_alpha"}},
      .logarithms = {"momentum", "decay"},
      .state = {{"W", {"initial_S", "final_S"}}, {"momentum", {"initial_M", "final_M"}}}};
  const Layout erase = {.inputs = {{"erase", "e"}, {"erase_strength", "gamma"}},
                        .scales_query = false};
  const Layout low_rank = {.inputs = {{"removal", "a"}, {"replacement", "b"}, {"decay", "gk"}}};
  return {
      {"comba_undecayed", {"Comba", {.inputs = {{"lookup", "p"}}}}},
      {"own_efla", {"Efla", {.scales_query = false}}},
      {"own_q_delta",
       {"QDelta", {.inputs = {{"probe", "q"}, {"mix", "lamb"}}, .of_unscaled_query = {"mix"}}}},
      {"own_fg2_gdn", {"FineGrainedDeltaRule"}},
      {"own_eda", {"EraseThenDelta", erase}},
      {"own_eda_scalar", {"ScalarEraseThenDelta", erase}},
      {"gdn2", {"GatedDeltaRule2", {.inputs = {{"erase", "b"}, {"write", "w"}}}}},
      {"rwkv7_dplr", {"LowRankRule", low_rank}},
      {"iplr", {"IdentityLowRankRule", low_rank}},
      // The state of the file is its transpose, as ours.
      {"gated_oja", {"GatedOjaRule"}},
      // Keys have a row for each of two writes, and so twice as many as queries.
      {"gated_delta_product", {"GatedDeltaProduct", {.scales_query = false}}},
      {"rwkv6", {"Rwkv6", {.inputs = {{"decay", "w"}}, .slow = {{"slow.bonus", {"u"}}}}}},
      {"own_longhorn", {"Longhorn", own}},
      {"own_longhorn_exact", {"ExactLonghorn", own}},
      {"precond_gated_delta_rule", {"PreconditionedDeltaRule", normalised}},
      {"precond_kda", {"VectorPreconditionedDeltaRule", preconditioned}},
      {"momentum_delta_rule", {"MomentumDeltaRule", momentum}},
      {"momentum_delta_rule_long", {"MomentumDeltaRule", momentum}},
      {"own_titans_linear",
       {"TitansMemory",
        {.inputs = {{"rate", "theta"}, {"momentum", "eta"}, {"forget", "alpha"}},
         .state = {{"W", {"W0", "final_W", /*key_major=*/false}},
                   {"momentum", {"S0", "final_S", /*key_major=*/false}}},
         .scales_query = false}}},
  };
}

}  // namespace reference
