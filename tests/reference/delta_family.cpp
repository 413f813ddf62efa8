#include <fastweights/memories/rules/comba.hpp>
#include <fastweights/memories/rules/gated_delta_product.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule_2.hpp>
#include <fastweights/memories/rules/gated_oja_rule.hpp>
#include <fastweights/memories/rules/longhorn.hpp>
#include <fastweights/memories/rules/low_rank_rule.hpp>
#include <fastweights/memories/rules/preconditioned_delta_rule.hpp>
#include <fastweights/memories/rules/rwkv6.hpp>
#include <fastweights/memories/rules/titans_memory.hpp>

#include "rule_run.hpp"

namespace reference {

namespace {

using fw::Dynamic;

// Runs the rule M, which has no hyperparameters but its sizes.
template <class M> void run(Case& file, const Layout& layout) {
  run(file, layout, [](Index dk, Index dv, Index, Index) { return M({dk, dv}); });
}

// Files of our own: states [B, H, d_v, d_k], queries as they are.
Layout own() {
  Layout layout;
  layout.state["W"] = {"W0", "final_W", /*key_major=*/false};
  layout.scales_query = false;
  return layout;
}

void comba(Case& file) {
  Layout layout;
  layout.inputs["lookup"] = "p";
  run<fw::Comba<double>>(file, layout);
}

void gated_delta_rule_2(Case& file) {
  Layout layout;
  layout.inputs["erase"] = "b";
  layout.inputs["write"] = "w";
  run<fw::GatedDeltaRule2<double>>(file, layout);
}

template <template <int, int> class Inputs> void low_rank(Case& file) {
  Layout layout;
  layout.inputs["removal"] = "a";
  layout.inputs["replacement"] = "b";
  layout.inputs["decay"] = "gk";
  run<fw::LowRankRule<double, Dynamic, Dynamic, Inputs>>(file, layout);
}

// The state of the file is its transpose, as ours.
void gated_oja(Case& file) { run<fw::GatedOjaRule<double>>(file, {}); }

template <int N> void delta_product(Case& file) {
  Layout layout;
  layout.scales_query = false;
  run<fw::GatedDeltaProduct<double, N>>(file, layout);
}
// Keys have a row for each write, and so more than queries by the number of writes.
void gated_delta_product(Case& file) {
  const Index writes = file["k"].axis(1) / file["q"].axis(1);
  if (writes == 1) return delta_product<1>(file);
  if (writes == 2) return delta_product<2>(file);
  if (writes == 3) return delta_product<3>(file);
  delta_product<4>(file);
}

void rwkv6(Case& file) {
  Layout layout;
  layout.inputs["decay"] = "w";
  layout.slow["slow.bonus"] = {"u"};
  run<fw::Rwkv6<double>>(file, layout);
}

template <fw::LonghornForm form> void longhorn(Case& file) {
  run<fw::Longhorn<double, Dynamic, Dynamic, form>>(file, own());
}

template <int Decays> void preconditioned(Case& file) {
  Layout layout;
  layout.inputs["moment_beta"] = "beta_atk";
  layout.inputs["moment_decay"] = "g_atk";
  layout.logarithms.insert("moment_decay");
  layout.state["A"] = {"initial_A_state", "final_A_state"};
  layout.slow["slow.log_scale"] = {"log_atk_scale"};
  if (Decays == 1) layout.normalise = 0;
  run<fw::PreconditionedDeltaRule<double, Dynamic, Dynamic, Decays>>(file, layout);
}

// Groups of value heads share the keys and queries of a head.
void grouped_l2(Case& file) {
  Layout layout;
  layout.normalise = 1e-6;
  run<fw::GatedDeltaRule<double>>(file, layout);
}
void grouped_kda(Case& file) {
  run<fw::GatedDeltaRule<double, Dynamic, Dynamic, fw::KeyValueBetaVectorDecay>>(file, {});
}

void titans(Case& file) {
  Layout layout = own();
  layout.inputs["rate"] = "theta";
  layout.inputs["momentum"] = "eta";
  layout.inputs["forget"] = "alpha";
  layout.state["momentum"] = {"S0", "final_S", /*key_major=*/false};
  run<fw::TitansMemory<double>>(file, layout);
}

}  // namespace

std::map<std::string, Test> delta_family_tests() {
  return {{"comba_undecayed", comba},
          {"gdn2", gated_delta_rule_2},
          {"rwkv7_dplr", low_rank<fw::KeyValueRemovalVectorDecay>},
          {"iplr", low_rank<fw::KeyValueRemoval>},
          {"gated_oja", gated_oja},
          {"gated_delta_product", gated_delta_product},
          {"rwkv6", rwkv6},
          {"own_longhorn", longhorn<fw::LonghornForm::diagonal>},
          {"own_longhorn_exact", longhorn<fw::LonghornForm::exact>},
          {"precond_gated_delta_rule", preconditioned<1>},
          {"precond_kda", preconditioned<Dynamic>},
          {"gated_delta_rule_grouped_l2", grouped_l2},
          {"kda_grouped", grouped_kda},
          {"own_titans_linear", titans}};
}

}  // namespace reference
