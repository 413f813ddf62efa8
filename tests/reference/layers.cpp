#include <fastweights/feature_maps/chain.hpp>
#include <fastweights/feature_maps/dpfp.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>

#include "residual_layer.hpp"

namespace reference {

namespace {

// The names of the slow net and of the output map. The rows of the slow net are ordered by head,
// with q, k, v (and β) of each head.
struct Source {
  std::string slow, out;
  Residual residual;
  bool scales_output;  // multiplies the memory's output by 1/√d_head
};
const Source delta_language_model{"p_qkvb_net__weight", "p_o_net__weight", language_model, true};
const Source sum_language_model{"p_qkv_net__weight", "p_o_net__weight", language_model, true};
const Source task{"p_slow_net__weight", "p_out_linear__weight", algorithmic, false};

template <class Map>
void run(Case& file, const Source& source, const std::string& memory, const Map& map,
         const std::map<std::string, double>& options = {}) {
  const Index d = size_of_heads(file, source.out), heads = heads_of(file);
  const auto rule = fw::make_memory<double>(
      memory, {.key_size = map.features(d), .value_size = d, .more = options});
  const fw::networks::FastWeightsOptions o{
      .heads = heads, .key_size = d, .scale = source.scales_output ? 1 / std::sqrt(double(d)) : 1};
  std::vector<Part> parts{{.map = "query", .rows = d, .record = "read"}, {"key", d}, {"value", d}};
  if (rule.written().size() == 3) parts.push_back({"beta", 1});
  run_layer(
      file, source.residual, [&](const X& x) { return fast_weights(x, "", rule, o, map); },
      [&](Weights& weights, const auto& f) {
        for_each_slow_row(source.slow, weights, heads, parts, f);
        output_rows(source.out, weights, f);
      });
}

using Elu = fw::EluPlusOne;
const std::map<std::string, double> epsilon{{"epsilon", 1e-5}};

template <const Source& source, class Map> void delta_net(Case& file) {
  run(file, source, "DeltaRule", fw::SumNormalised<Map>());
}
void normalised_delta_net(Case& file) {
  run(file, delta_language_model, "NormalisedDeltaRule", fw::SumNormalised<Elu>(), epsilon);
}
void sum_linear(Case& file) {
  run(file, sum_language_model, "NormalisedLinearAttention", Elu(), epsilon);
}
void layer_linear_attention(Case& file) { run(file, task, "LinearAttention", Elu()); }

}  // namespace

std::map<std::string, Test> layer_tests() {
  return {{"idsia_lm_delta_net", delta_net<delta_language_model, Elu>},
          {"idsia_lm_delta_net_attnnorm", normalised_delta_net},
          {"idsia_lm_dpfp2_delta", delta_net<delta_language_model, fw::Dpfp<2>>},
          {"idsia_lm_sum_linear", sum_linear},
          {"idsia_layer_delta_net", delta_net<task, Elu>},
          {"idsia_layer_linear_attn", layer_linear_attention}};
}

}  // namespace reference
