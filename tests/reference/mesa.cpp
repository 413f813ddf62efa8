#include <fastweights/memories/rules/mesa_memory.hpp>

#include "rule_run.hpp"

namespace reference {

namespace {

using fw::Dynamic;

Layout mesa_layout() {
  Layout layout;
  layout.state = {{"W", {"initial_h_kv", "final_h_kv"}},
                  {"G", {"initial_h_kk", "final_h_kk", /*key_major=*/false}}};
  layout.slow["slow.ridge"] = {"lamb"};
  layout.scales_query = false;
  return layout;
}

template <class Solver> void mesa(Case& file, const Layout& layout) {
  run(file, layout, [](Index dk, Index dv, Index, Index) {
    return fw::MesaMemory<double, Dynamic, Dynamic, Solver>({dk, dv});
  });
}
void mesa_exact(Case& file) { mesa<fw::ExactSolver>(file, mesa_layout()); }
// One step: no axis of tokens.
void mesa_conjugate_gradients(Case& file) {
  Layout layout = mesa_layout();
  for (const char* name : {"q", "k", "v", "o"}) layout.axes[name] = "BHD";
  for (const char* name : {"g", "beta"}) layout.axes[name] = "BH";
  mesa<fw::ConjugateGradients>(file, layout);
}

}  // namespace

std::map<std::string, Test> mesa_tests() {
  return {{"mesa_net_exact", mesa_exact}, {"mesa_net_cg_one_step", mesa_conjugate_gradients}};
}

}  // namespace reference
