#include <fastweights/feature_maps/symmetric_power.hpp>
#include <fastweights/memories/adaptors/feature_mapped.hpp>
#include <fastweights/memories/rules/normalised_gated_attention.hpp>
#include <fastweights/memories/rules/test_time_training.hpp>

#include "rule_run.hpp"

/// \file
/// Memories that the table has with another feature map or objective only.

namespace reference {

namespace {

void power_attention(Case& file) {
  using Map = fw::SymmetricPower<4>;
  using M = fw::NormalisedGatedAttention<double>;
  run(file, {.scales_query = false}, [](Index d_key, Index dv, Index) {
    return fw::FeatureMapped<M, Map>(M({Map().features(d_key), dv}), d_key);
  });
}

// flash-linear-attention's form of TTT: the output is not added to the query.
void ttt_linear(Case& file) {
  using Objective = fw::NormalisedObjective<fw::Residual::answer>;
  const Layout layout = {.inputs = {{"token_rate", "eta"}},
                         .constants = {{"rate", 1}},
                         .state = {{"weights.W", {"initial_state", "final_state"}},
                                   {"weights.b", {"initial_state_bias", "final_state_bias"}}},
                         .slow = {{"slow.weight", {"w"}}, {"slow.bias", {"b"}}}};
  const Index batch = std::stol(file.setting("mini_batch_size"));
  const double epsilon = std::stod(file.setting("eps"));
  run(file, layout, [=](Index d, Index, Index) {
    return fw::TttLinear<double, fw::Dynamic, Objective>({d},
                                                         {.batch = batch, .objective = {epsilon}});
  });
}

}  // namespace

std::map<std::string, Test> typed_memory_tests() {
  return {{"own_power_attn_4", power_attention}, {"ttt_linear", ttt_linear}};
}

}  // namespace reference
