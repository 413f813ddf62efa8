#include <fastweights/memories/rules/atlas_memory.hpp>
#include <fastweights/memories/rules/miras_memory.hpp>
#include <fastweights/memories/rules/omega_memory.hpp>

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

}  // namespace

std::map<std::string, Test> test_time_tests() {
  return {{"own_yaad_linear", yaad},
          {"own_moneta_linear", moneta},
          {"own_memora_linear", memora},
          {"own_omega_linear", omega},
          {"own_atlas_linear", atlas}};
}

}  // namespace reference
