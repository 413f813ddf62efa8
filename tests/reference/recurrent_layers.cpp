#include <fastweights/feature_maps/chain.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/layers/self_referential.hpp>

#include "residual_layer.hpp"
#include "self_referential.hpp"

namespace reference {

namespace {

using SumElu = fw::SumNormalised<fw::EluPlusOne>;

template <class Map = fw::IdentityMap>
auto layer_of(const Case& file, const std::string& memory, const fw::MemoryOptions& sizes,
              double scale = 1, const Map& map = {}) {
  return [=, heads = heads_of(file)](const X& x) {
    return fast_weights(x, "", fw::make_memory<double>(memory, sizes),
                        {.heads = heads, .scale = scale}, map);
  };
}

void delta_rnn(Case& file, const std::string& slow, const std::string& out, bool scales,
               const Residual& residual) {
  const Index d = size_of_heads(file, out);
  const double scale = scales ? 1 / std::sqrt(double(d)) : 1;
  run_layer(file, residual, layer_of(file, "DeltaRnn", {.key_size = d}, scale, SumElu()),
            [&](Weights& weights, const auto& f) {
              for_each_slow_row(slow, weights, heads_of(file),
                                {{"query", d},
                                 {"key", d},
                                 {"value", d},
                                 {"recurrent_key", d},
                                 {"recurrent_value", d},
                                 {"beta", 1},
                                 {"recurrent_beta", 1}},
                                f);
              output_rows(out, weights, f);
            });
}

void layer_delta_rnn(Case& file) {
  delta_rnn(file, "p_slow_net__weight", "p_out_linear__weight", false, algorithmic);
}
void language_model_delta_rnn(Case& file) {
  delta_rnn(file, "p_qkvb_net__weight", "p_o_net__weight", true, language_model);
}

void language_model_delta_lstm(Case& file) {
  const Index d = size_of_heads(file, "p_o_net__weight");
  std::vector<Part> parts;
  for (Index g = 0; g < 3; ++g)
    for (const char* map : {"query", "key", "value", "recurrent_key", "recurrent_value"})
      parts.push_back({map, d, g});
  for (Index g = 0; g < 3; ++g)
    for (const char* map : {"beta", "recurrent_beta"}) parts.push_back({map, 1, g, 3});
  run_layer(file, language_model,
            layer_of(file, "DeltaLstm", {.key_size = d}, 1 / std::sqrt(double(d)), SumElu()),
            [&](Weights& weights, const auto& f) {
              for_each_slow_row("p_qkv_net__weight", weights, heads_of(file), parts, f);
              output_rows("p_o_net__weight", weights, f);
            });
}

void layer_recurrent_delta_net(Case& file) {
  const Index d = size_of_heads(file, "p_out_linear__weight");
  run_layer(file, algorithmic, layer_of(file, "RecurrentDeltaNet", {.key_size = d}),
            [&](Weights& weights, const auto& f) {
              for_each_slow_row("p_slow_net__weight", weights, heads_of(file),
                                {{"query", d}, {"key", d}, {"value", d}, {"beta", 1}}, f);
              output_rows("p_out_linear__weight", weights, f);
              for (Index h = 0; h < heads_of(file); ++h) {
                const std::string slow = "slow." + std::to_string(h) + ".";
                f("p_R_q", h, -1, weights[slow + "query"].middleRows(0, d));
                f("p_R_k", h, -1, weights[slow + "key"].middleRows(0, d));
                f("p_R_v", h, -1, weights[slow + "value"].middleRows(0, d));
                f("p_r_b", h, -1, weights[slow + "beta"].middleRows(0, d));
              }
            });
}

void language_model_delta_delta(Case& file) {
  const Index d = size_of_heads(file, "p_o_net__weight");
  run_layer(file, language_model, layer_of(file, "DeltaDeltaNet", {.key_size = d}),
            [&](Weights& weights, const auto& f) {
              for_each_slow_row("p_slow_net__weight", weights, heads_of(file),
                                {{"query", d}, {"key", d}, {"value", 3 * d + 1}, {"beta", 1}}, f);
              output_rows("p_o_net__weight", weights, f);
            });
}

// The slow net has rows for two fast blocks in every head, of which the source uses the first: the
// queries of all heads, then for every head four keys and four values, then two strengths a head.
void language_model_delta_mlp(Case& file) {
  const std::string slow = "p_qkv_net__weight";
  const Index d = size_of_heads(file, "p_o_net__weight"), d_model = file["x"].axis(2),
              heads = heads_of(file), hidden = 4 * d_model / heads;
  const auto for_each_part = [&](Weights& weights, const auto& f) {
    for (Index h = 0; h < heads; ++h) {
      const auto rows = [&](const std::string& map, Index count, Index first) {
        f(slow, 0, first, weights.projection(map).middleRows(h * count, count));
      };
      const Index keys = heads * d + h * 4 * (d + hidden), values = keys + 2 * (d + hidden),
                  strengths = heads * (d + 4 * (d + hidden)) + 2 * h;
      rows("read.query", d, h * d);
      rows("write.key", d, keys);
      rows("write.hidden_key", hidden, keys + d);
      rows("write.value", hidden, values);
      rows("write.hidden_value", d, values + hidden);
      rows("write.beta", 1, strengths);
      rows("write.hidden_beta", 1, strengths + 1);
      const std::string norm = "slow." + std::to_string(h) + ".";
      f("p_fast_net_layer_norms__0__weight", 0, -1, weights[norm + "weight"].middleRows(0, d));
      f("p_fast_net_layer_norms__0__bias", 0, -1, weights[norm + "bias"].middleRows(0, d));
    }
    output_rows("p_o_net__weight", weights, f);
  };
  const fw::MemoryOptions sizes{.key_size = d, .more = {{"hidden", double(hidden)}}};
  run_layer(file, language_model, layer_of(file, "DeltaMlp", sizes), for_each_part);
}

void layer_self_referential(Case& file) {
  const Index d = size_of_heads(file, "p_out_linear__weight");
  const Index heads = file["x"].axis(2) / d;
  run_layer(
      file, self_referential_residual, [&](const X& x) { return self_referential(x, "", heads); },
      [&](Weights& weights, const auto& f) {
        output_rows("p_out_linear__weight", weights, f);
        for (Index h = 0; h < heads; ++h)
          for (const auto& [name, first, rows] : self_referential_blocks(d, d))
            f("p_" + name, h, -1,
              weights["initial." + std::to_string(h) + ".W"].middleRows(first, rows));
      });
}

}  // namespace

std::map<std::string, Test> recurrent_layer_tests() {
  return {{"idsia_layer_delta_rnn", layer_delta_rnn},
          {"idsia_layer_rdn", layer_recurrent_delta_net},
          {"idsia_layer_srwm", layer_self_referential},
          {"idsia_lm_delta_delta", language_model_delta_delta},
          {"idsia_lm_delta_mlp", language_model_delta_mlp},
          {"idsia_lm_delta_rnn", language_model_delta_rnn},
          {"idsia_lm_delta_lstm", language_model_delta_lstm}};
}

}  // namespace reference
