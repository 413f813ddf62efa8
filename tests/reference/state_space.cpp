#include <fastweights/feature_maps/symmetric_power.hpp>
#include <fastweights/feature_maps/taylor.hpp>
#include <fastweights/memories/adaptors/feature_mapped.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/gated_slot_attention.hpp>
#include <fastweights/memories/rules/hgrn.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>
#include <fastweights/memories/rules/mamba3.hpp>
#include <fastweights/memories/rules/mlstm.hpp>
#include <fastweights/memories/rules/normalised_gated_attention.hpp>
#include <fastweights/memories/rules/selective_scan.hpp>

#include "rule_run.hpp"

namespace reference {

namespace {

using fw::Dynamic;

// Mamba-2 is gated linear attention under other names; its states are [B, H, d_v, d_k].
void mamba2(Case& file) {
  Layout layout;
  layout.inputs = {{"key", "B"}, {"value", "x"}, {"decay", "a"}, {"query", "C"}};
  layout.state["W"] = {"initial_state", "final_state", /*key_major=*/false};
  layout.scales_query = false;
  run(file, layout, [](Index dk, Index dv, Index, Index) {
    return fw::GatedLinearAttention<double, Dynamic, Dynamic, fw::KeyValueDecay>({dk, dv});
  });
}

// A vector per sequence: no heads.
void hgrn(Case& file) {
  Layout layout;
  layout.inputs = {{"value", "x"}, {"decay", "g"}};
  for (const char* name : {"x", "g", "o"}) layout.axes[name] = "BTD";
  layout.state = {{"h", {"initial_state", "final_state"}}};
  run(file, layout, [](Index, Index d, Index, Index) { return fw::Hgrn<double>(d); });
}

void mlstm(Case& file) {
  Layout layout;
  layout.inputs["input_gate"] = "i";
  layout.inputs["forget_gate"] = "f";
  layout.state = {{"W", {"initial_C", "final_C"}},
                  {"normaliser", {"initial_n", "final_n"}},
                  {"log_scale", {"initial_m", "final_m"}}};
  run(file, layout, [](Index dk, Index dv, Index, Index) { return fw::Mlstm<double>({dk, dv}); });
}

void gated_slot_attention(Case& file) {
  Layout layout;
  layout.inputs["strength"] = "s";
  layout.state = {{"keys", {"initial_hk", "final_hk"}}, {"values", {"initial_hv", "final_hv"}}};
  const Index slots = file["s"].axis(3);
  run(file, layout, [&](Index dk, Index dv, Index, Index) {
    return fw::GatedSlotAttention<double>({dk, dv}, slots);
  });
}

// Linear attention behind a feature map.
template <class Map> void feature_mapped(Case& file) {
  using Normaliser = fw::AttentionNormaliser<double>;
  using M = fw::LinearAttention<double, Dynamic, Dynamic, Normaliser>;
  run(file, {}, [](Index d_key, Index dv, Index, Index) {
    return fw::FeatureMapped<M, Map>(M({Map().features(d_key), dv}, Normaliser{1e-6}), d_key);
  });
}

void power_attention(Case& file) {
  using Map = fw::SymmetricPower<4>;
  using M = fw::NormalisedGatedAttention<double>;
  Layout layout;
  layout.scales_query = false;
  run(file, layout, [](Index d_key, Index dv, Index, Index) {
    return fw::FeatureMapped<M, Map>(M({Map().features(d_key), dv}), d_key);
  });
}

// One head, channels first.
void mamba1(Case& file) {
  Layout layout;
  layout.inputs = {{"key", "B"}, {"value", "u"}, {"step", "delta"}, {"query", "C"}, {"gate", "z"}};
  for (const char* name : {"B", "u", "delta", "C", "z", "o"}) layout.axes[name] = "BDT";
  layout.state["W"] = {"", "final_state", /*key_major=*/false};
  layout.slow["slow.A"] = {"A", /*key_major=*/false};
  layout.slow["slow.skip"] = {"D"};
  layout.slow["slow.step_bias"] = {"delta_bias"};
  layout.scales_query = false;
  run(file, layout, [](Index dk, Index dv, Index, Index) {
    return fw::SelectiveScan<double>({dk, dv});
  });
}

void mamba3(Case& file) {
  Layout layout;
  layout.inputs = {{"key", "k"},      {"value", "v"},       {"decay", "adt"}, {"step", "dt"},
                   {"share", "trap"}, {"angles", "angles"}, {"query", "q"},   {"gate", "z"}};
  for (const char* name : {"adt", "dt", "trap"}) layout.axes[name] = "BHT";
  layout.sigmoids.insert("share");
  layout.state = {{"W", {"initial_state", "final_state", /*key_major=*/false}},
                  {"angle", {"initial_angle", "final_angle"}},
                  {"key", {"initial_k", "final_k"}},
                  {"value", {"initial_v", "final_v"}}};
  layout.slow["slow.key_bias"] = {"k_bias"};
  layout.slow["slow.query_bias"] = {"q_bias"};
  layout.slow["slow.skip"] = {"D"};
  layout.scales_query = false;
  const Index angles = file["angles"].axis(3);
  run(file, layout, [&](Index dk, Index dv, Index, Index) {
    return fw::Mamba3<double>({dk, dv}, angles);
  });
}

}  // namespace

std::map<std::string, Test> state_space_tests() {
  return {{"mamba2_ssd", mamba2},
          {"hgrn", hgrn},
          {"mlstm", mlstm},
          {"gsa", gated_slot_attention},
          {"based_taylor", feature_mapped<fw::TaylorMap>},
          {"rebased", feature_mapped<fw::SymmetricPower<2>>},
          {"own_power_attn_4", power_attention},
          {"mamba1_selective_scan", mamba1},
          {"mamba3_siso", mamba3}};
}

}  // namespace reference
