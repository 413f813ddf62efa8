#include <fastweights/memories/rules/atlas_memory.hpp>
#include <fastweights/memories/rules/miras_memory.hpp>
#include <fastweights/memories/rules/omega_memory.hpp>
#include <fastweights/memories/rules/test_time_training.hpp>
#include <fastweights/memories/rules/titans_learner.hpp>

#include "rule_run.hpp"

namespace reference {

namespace {

using fw::Dynamic;

// Runs the rule M, which has no hyperparameters but its sizes.
template <class M> void run(Case& file, const Layout& layout) {
  run(file, layout, [](Index dk, Index dv, Index, Index) { return M({dk, dv}); });
}

// Files of our own: states [B, H, d_v, d_k], queries as they are, decays instead of logarithms.
Layout own() {
  Layout layout;
  layout.inputs["beta"] = "eta";
  layout.inputs["decay"] = "alpha";
  layout.logarithms = {};
  layout.state = {};
  layout.scales_query = false;
  return layout;
}

void yaad(Case& file) {
  Layout layout = own();
  layout.inputs["threshold"] = "delta";
  layout.state["A"] = {"W0", "final_W", /*key_major=*/false};
  run<fw::Yaad<double>>(file, layout);
}

void moneta(Case& file) {
  Layout layout = own();
  layout.state["A"] = {"A0", "final_A", /*key_major=*/false};
  run<fw::Moneta<double>>(file, layout);
}

void memora(Case& file) {
  Layout layout = own();
  layout.state["A"] = {"L0", "final_W", /*key_major=*/false, /*softmax=*/true};
  run<fw::Memora<double>>(file, layout);
}

// Memories of the last tokens, as many as there are weights γ.
template <class M> void run_window(Case& file, const Layout& layout) {
  const Index window = file["gamma"].axis(3);
  run(file, layout, [=](Index dk, Index dv, Index, Index) { return M({dk, dv}, window); });
}

void omega(Case& file) {
  Layout layout = own();
  layout.inputs["weights"] = "gamma";
  layout.state["W"] = {"W0", "final_W", /*key_major=*/false};
  run_window<fw::OmegaMemory<double>>(file, layout);
}

void atlas(Case& file) {
  Layout layout = own();
  layout.inputs["weights"] = "gamma";
  layout.inputs["momentum"] = "theta";
  layout.state["W"] = {"W0", "final_W", /*key_major=*/false};
  layout.state["momentum"] = {"S0", "final_S", /*key_major=*/false};
  run_window<fw::AtlasMemory<double>>(file, layout);
}

// The files of TTT have [B, H, mini-batch, token, D], and weights [H, …] that all sequences share.
Layout official_ttt(Case& file) {
  Layout layout;
  for (const char* name : {"q", "k", "v", "o"}) layout.axes[name] = "BHTTD";
  for (const char* name : {"lr_eta", "token_eta"}) layout.axes[name] = "BHTTT";
  layout.scales_query = false;
  layout.inputs["rate"] = "lr_eta";
  layout.inputs["token_rate"] = "token_eta";
  layout.slow["slow.weight"] = {"ln_weight"};
  layout.slow["slow.bias"] = {"ln_bias"};
  layout.state = {};
  const bool mlp = file.has("W2");
  const auto add = [&](const std::string& path, const std::string& array) {
    layout.slow["weights." + path] = {array};
    layout.state["weights." + path] = {"", "final_" + array};
  };
  add(mlp ? "first.W" : "W", "W1");
  add(mlp ? "first.b" : "b", "b1");
  if (mlp) {
    add("second.W", "W2");
    add("second.b", "b2");
  }
  return layout;
}

void ttt_linear_official(Case& file) {
  const Index batch = file["q"].axis(3);
  run(file, official_ttt(file),
      [=](Index d, Index, Index, Index) { return fw::TttLinear<double>({d}, {.batch = batch}); });
}

void ttt_mlp_official(Case& file) {
  const Index batch = file["q"].axis(3), hidden = file["W2"].axis(1);
  run(file, official_ttt(file), [=](Index d, Index, Index, Index) {
    return fw::TttMlp<double>({d}, {.batch = batch, .model = {hidden}});
  });
}

// flash-linear-attention's forms.
void ttt_linear(Case& file) {
  Layout layout;
  layout.inputs["token_rate"] = "eta";
  layout.constants["rate"] = 1;
  layout.state = {{"weights.W", {"initial_state", "final_state"}},
                  {"weights.b", {"initial_state_bias", "final_state_bias"}}};
  layout.slow = {{"slow.weight", {"w"}}, {"slow.bias", {"b"}}};
  const Index batch = std::stol(file.setting("mini_batch_size"));
  const double epsilon = std::stod(file.setting("eps"));
  using Objective = fw::NormalisedObjective<fw::Residual::answer>;
  run(file, layout, [=](Index d, Index, Index, Index) {
    return fw::TttLinear<double, Dynamic, Objective>({d}, {.batch = batch, .objective = {epsilon}});
  });
}

Layout titans_layout() {
  Layout layout;
  layout.scales_query = false;
  layout.inputs["rate"] = "theta";
  layout.inputs["momentum"] = "eta";
  layout.inputs["forget"] = "alpha";
  return layout;
}

void titans_linear(Case& file) {
  Layout layout = titans_layout();
  layout.state = {{"weights.W", {"initial_state", "final_state"}}};
  layout.slow = {{"slow.weight", {"w"}}, {"slow.bias", {"b"}}};
  const double epsilon = std::stod(file.setting("eps"));
  run(file, layout, [=](Index d, Index, Index, Index) {
    return fw::NormalisedTitans<double>({d}, {.objective = {epsilon}});
  });
}

void titans_mlp(Case& file) {
  Layout layout = titans_layout();
  layout.state = {{"weights.first.W", {"A0", "final_A", /*key_major=*/false}},
                  {"weights.second.W", {"B0", "final_B", /*key_major=*/false}}};
  const Index hidden = file["A0"].axis(2);
  run(file, layout, [=](Index dk, Index dv, Index, Index) {
    return fw::TitansMlp<double>({dk, dv}, {.model = {hidden}});
  });
}

}  // namespace

std::map<std::string, Test> test_time_tests() {
  return {{"own_yaad_linear", yaad},
          {"own_moneta_linear", moneta},
          {"own_memora_linear", memora},
          {"own_omega_linear", omega},
          {"own_atlas_linear", atlas},
          {"ttt_linear_official", ttt_linear_official},
          {"ttt_mlp_official", ttt_mlp_official},
          {"ttt_linear", ttt_linear},
          {"titans_linear_chunk1", titans_linear},
          {"own_titans_mlp", titans_mlp}};
}

}  // namespace reference
