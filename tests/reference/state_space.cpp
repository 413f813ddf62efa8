#include "layout.hpp"

namespace reference {

MemoryCases state_space_cases() {
  return {
      // Mamba-2 is gated linear attention under other names; its states are [B, H, d_v, d_k].
      {"mamba2_ssd",
       {"SimpleGatedLinearAttention",
        {.inputs = {{"key", "B"}, {"value", "x"}, {"decay", "a"}, {"query", "C"}},
         .state = {{"W", {"initial_state", "final_state", /*key_major=*/false}}},
         .scales_query = false}}},
      // A vector per sequence: no heads.
      {"hgrn",
       {"Hgrn",
        {.inputs = {{"value", "x"}},
         .axes = {{"x", "BTD"}, {"g", "BTD"}, {"o", "BTD"}},
         .state = {{"h", {"initial_state", "final_state"}}}}}},
      {"mlstm",
       {"Mlstm",
        {.inputs = {{"input_gate", "i"}, {"forget_gate", "f"}},
         .state = {{"W", {"initial_C", "final_C"}},
                   {"normaliser", {"initial_n", "final_n"}},
                   {"log_scale", {"initial_m", "final_m"}}}}}},
      {"gsa",
       {"GatedSlotAttention",
        {.inputs = {{"strength", "s"}},
         .state = {{"keys", {"initial_hk", "final_hk"}}, {"values", {"initial_hv", "final_hv"}}}},
        {{"slots", axis("s", 3)}}}},
      {"based_taylor", {"TaylorLinearAttention", {}, {{"epsilon", {1e-6}}}}},
      {"rebased", {"SquaredLinearAttention", {}, {{"epsilon", {1e-6}}}}},
      // One head, channels first.
      {"mamba1_selective_scan",
       {"SelectiveScan",
        {.inputs = {{"key", "B"}, {"value", "u"}, {"step", "delta"}, {"query", "C"}, {"gate", "z"}},
         .axes = {{"B", "BDT"},
                  {"u", "BDT"},
                  {"delta", "BDT"},
                  {"C", "BDT"},
                  {"z", "BDT"},
                  {"o", "BDT"}},
         .state = {{"W", {"", "final_state", /*key_major=*/false}}},
         .slow = {{"slow.A", {"A", /*key_major=*/false}},
                  {"slow.skip", {"D"}},
                  {"slow.step_bias", {"delta_bias"}}},
         .scales_query = false}}},
      {"mamba3_siso",
       {"Mamba3",
        {.inputs = {{"decay", "adt"},
                    {"step", "dt"},
                    {"share", "trap"},
                    {"angles", "angles"},
                    {"gate", "z"}},
         .axes = {{"adt", "BHT"}, {"dt", "BHT"}, {"trap", "BHT"}},
         .sigmoids = {"share"},
         .state = {{"W", {"initial_state", "final_state", /*key_major=*/false}},
                   {"angle", {"initial_angle", "final_angle"}},
                   {"key", {"initial_k", "final_k"}},
                   {"value", {"initial_v", "final_v"}}},
         .slow = {{"slow.key_bias", {"k_bias"}},
                  {"slow.query_bias", {"q_bias"}},
                  {"slow.skip", {"D"}}},
         .scales_query = false},
        {{"angles", axis("angles", 3)}}}},
  };
}

}  // namespace reference
