#include "layout.hpp"

namespace reference {

namespace {

// Files of our own: states [B, H, d_v, d_k], queries as they are, decays instead of logarithms.
Layout own(std::map<std::string_view, std::string> inputs,
           std::map<std::string, Layout::Kept> state) {
  inputs.insert({{"beta", "eta"}, {"decay", "alpha"}});
  for (auto& [path, kept] : state) kept.key_major = false;
  return {.inputs = inputs, .logarithms = {}, .state = state, .scales_query = false};
}

// The published files of TTT have [B, H, mini-batch, token, D], and weights [H, …] that all
// sequences share. `weights` are the arrays of the model's parameters.
Layout published(const std::map<std::string, std::string>& weights) {
  Layout layout = {.inputs = {{"rate", "lr_eta"}, {"token_rate", "token_eta"}},
                   .axes = {{"lr_eta", "BHTTT"}, {"token_eta", "BHTTT"}},
                   .state = {},
                   .slow = {{"slow.weight", {"ln_weight"}}, {"slow.bias", {"ln_bias"}}},
                   .scales_query = false};
  for (const char* name : {"q", "k", "v", "o"}) layout.axes[name] = "BHTTD";
  for (const auto& [path, array] : weights) {
    layout.slow["weights." + path] = {array};
    layout.state["weights." + path] = {"", "final_" + array};
  }
  return layout;
}

Layout titans(std::map<std::string, Layout::Kept> state,
              std::map<std::string, Layout::Slow> slow = {}) {
  return {.inputs = {{"rate", "theta"}, {"momentum", "eta"}, {"forget", "alpha"}},
          .state = std::move(state),
          .slow = std::move(slow),
          .scales_query = false};
}

Layout mesa() {
  return {.state = {{"W", {"initial_h_kv", "final_h_kv"}},
                    {"G", {"initial_h_kk", "final_h_kk", /*key_major=*/false}}},
          .slow = {{"slow.ridge", {"lamb"}}},
          .scales_query = false};
}

// A solution is linear in the query, so the scale of the output may be that of the query.
MemoryCase kalma() {
  return {"KalmaMemory",
          {.inputs = {{"mix", "alpha"}},
           .state = {{"W", {"initial_U", "final_U"}},
                     {"G", {"initial_H", "final_H", /*key_major=*/false}}}},
          {{"iterations", setting("num_iter")}, {"ridge", setting("ridge")}}};
}

// One step: no axis of tokens.
Layout mesa_step() {
  Layout layout = mesa();
  for (const char* name : {"q", "k", "v", "o"}) layout.axes[name] = "BHD";
  for (const char* name : {"g", "beta"}) layout.axes[name] = "BH";
  return layout;
}

}  // namespace

MemoryCases test_time_cases() {
  return {
      {"mesa_net_exact", {"MesaMemory", mesa()}},
      {"mesa_net_cg_one_step", {"IterativeMesaMemory", mesa_step()}},
      {"own_gated_kalmanet", kalma()},
      {"own_yaad_linear", {"Yaad", own({{"threshold", "delta"}}, {{"A", {"W0", "final_W"}}})}},
      {"own_moneta_linear", {"Moneta", own({}, {{"A", {"A0", "final_A"}}})}},
      {"own_memora_linear",
       {"Memora", own({}, {{"A", {"L0", "final_W", false, /*softmax=*/true}}})}},
      // Memories of the last tokens, as many as there are weights γ.
      {"own_omega_linear",
       {"OmegaMemory",
        own({{"weights", "gamma"}}, {{"W", {"W0", "final_W"}}}),
        {{"window", axis("gamma", 3)}}}},
      {"own_atlas_linear",
       {"AtlasMemory",
        own({{"weights", "gamma"}, {"momentum", "theta"}},
            {{"W", {"W0", "final_W"}}, {"momentum", {"S0", "final_S"}}}),
        {{"window", axis("gamma", 3)}}}},
      {"ttt_linear_official",
       {"TttLinear", published({{"W", "W1"}, {"b", "b1"}}), {{"batch", axis("q", 3)}}}},
      {"ttt_mlp_official",
       {"TttMlp",
        published({{"first.W", "W1"}, {"first.b", "b1"}, {"second.W", "W2"}, {"second.b", "b2"}}),
        {{"batch", axis("q", 3)}, {"hidden", axis("W2", 1)}}}},
      {"titans_linear_chunk1",
       {"NormalisedTitans",
        titans({{"weights.W", {"initial_state", "final_state"}}},
               {{"slow.weight", {"w"}}, {"slow.bias", {"b"}}}),
        {{"epsilon", setting("eps")}}}},
      {"own_titans_mlp",
       {"TitansMlp",
        titans({{"weights.first.W", {"A0", "final_A", /*key_major=*/false}},
                {"weights.second.W", {"B0", "final_B", /*key_major=*/false}}}),
        {{"hidden", axis("A0", 2)}}}},
  };
}

}  // namespace reference
