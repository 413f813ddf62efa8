#include <fastweights/feature_maps/chain.hpp>
#include <fastweights/feature_maps/dpfp.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/layers/memory/fast_weight_layer.hpp>
#include <fastweights/layers/norms/layer_norm.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>

#include "case.hpp"

namespace reference {

namespace {

using Normaliser = fw::AttentionNormaliser<double>;

// A whole layer of the sources: layer norm, slow net, memory heads, output map, residual. The rows
// of the slow net are ordered by head, with q, k, v (and β) of each head.
struct Source {
  std::string slow, out;    // the names of the slow net and of the output map
  bool residual_is_normed;  // o = LN(x) + …, else o = x + …
  bool scales_output;       // multiplies the memory's output by 1/√d_head
};
const Source language_model{"p_qkvb_net__weight", "p_o_net__weight", true, true};
const Source sum_language_model{"p_qkv_net__weight", "p_o_net__weight", true, true};
const Source algorithmic{"p_slow_net__weight", "p_out_linear__weight", false, false};

// Calls f(rows of the slow net, rows of our projection) for every head of q, k, v (and β).
template <class Slow, class L, class F>
void for_each_block(Slow&& slow, L& layer, Index d_head, const F& f) {
  std::vector<std::pair<Matrix*, Index>> parts{{&layer.read.query.weight, d_head},
                                               {&layer.write.key.weight, d_head},
                                               {&layer.write.value.weight, d_head}};
  if constexpr (requires { layer.write.beta; }) parts.push_back({&layer.write.beta.weight, 1});
  Index row = 0;
  for (Index h = 0; h < layer.heads; ++h)
    for (const auto& [weight, rows] : parts) {
      f(slow.middleRows(row, rows), weight->middleRows(h * rows, rows));
      row += rows;
    }
}

template <class M, class Map, class Make>
void run(Case& file, const Source& source, const Make& make) {
  Array x = file["x"], up = file["up_o"], o = file.like("o"), dx = file.like("x");
  Array slow = file[source.slow], out = file[source.out];
  const Index d_model = x.axis(2), heads = std::stoll(file.setting("heads"));
  const Index d_head = out.axis(1) / heads;
  const Map map;
  const M memory = make(map.features(d_head), d_head);
  using Layer = fw::FastWeightLayer<M, Map>;
  Layer layer({.d_model = d_model,
               .heads = heads,
               .d_key = d_head,
               .scale = source.scales_output ? 1 / std::sqrt(double(d_head)) : 1.0},
              memory);
  for_each_block(slow.matrix(), layer, d_head, [](auto theirs, auto ours) { ours = theirs; });
  layer.output.weight = out.matrix();
  fw::LayerNorm<double> norm(d_model);
  norm.weight = file["p_layer_norm__weight"].flat();
  norm.bias = file["p_layer_norm__bias"].flat();

  auto dlayer = layer;
  auto dnorm = norm;
  fw::set_zero_parameters(dlayer);
  fw::set_zero_parameters(dnorm);
  typename Layer::Trace trace;
  fw::LayerNorm<double>::Trace norm_trace;
  for (Index b = 0; b < x.axis(1); ++b) {
    const Matrix in = x.time_first(b), dy = up.time_first(b);
    Matrix normed(d_model, in.cols()), y(d_model, in.cols()), dnormed(d_model, in.cols()),
        din(d_model, in.cols());
    auto state = layer.initial_state();
    auto none = norm.initial_state();
    norm.forward(none, in, normed, norm_trace, fw::Pass::train);
    layer.forward(state, normed, y, trace, fw::Pass::train);
    o.time_first(b) = y + (source.residual_is_normed ? normed : in);
    layer.backward(normed, trace, dy, dnormed, dlayer);
    if (source.residual_is_normed) dnormed += dy;
    norm.backward(in, norm_trace, dnormed, din, dnorm);
    if (!source.residual_is_normed) din += dy;
    dx.time_first(b) = din;
  }
  file.forward("o", o);
  file.gradient("grad_x", dx);

  Array dslow = file.like(source.slow), dout = file.like(source.out);
  for_each_block(dslow.matrix(), dlayer, d_head, [](auto theirs, auto ours) { theirs = ours; });
  dout.matrix() = dlayer.output.weight;
  Array dweight = file.like("p_layer_norm__weight"), dbias = file.like("p_layer_norm__bias");
  dweight.flat() = dnorm.weight;
  dbias.flat() = dnorm.bias;
  file.gradient("grad_" + source.slow, dslow);
  file.gradient("grad_" + source.out, dout);
  file.gradient("grad_p_layer_norm__weight", dweight);
  file.gradient("grad_p_layer_norm__bias", dbias);
}

template <const Source& source, class Map> void delta_net(Case& file) {
  using M = fw::DeltaRule<double>;
  run<M, fw::SumNormalised<Map>>(file, source, [](Index dk, Index dv) { return M({dk, dv}); });
}

void normalised_delta_net(Case& file) {
  using M = fw::DeltaRule<double, -1, -1, Normaliser>;
  run<M, fw::SumNormalised<fw::EluPlusOne>>(file, language_model, [](Index dk, Index dv) {
    return M({dk, dv}, Normaliser{1e-5});
  });
}

void sum_linear(Case& file) {
  using M = fw::LinearAttention<double, -1, -1, Normaliser>;
  run<M, fw::EluPlusOne>(file, sum_language_model, [](Index dk, Index dv) {
    return M({dk, dv}, Normaliser{1e-5});
  });
}

void layer_linear_attention(Case& file) {
  using M = fw::LinearAttention<double>;
  run<M, fw::EluPlusOne>(file, algorithmic, [](Index dk, Index dv) { return M({dk, dv}); });
}

}  // namespace

std::map<std::string, Test> layer_tests() {
  return {{"idsia_lm_delta_net", delta_net<language_model, fw::EluPlusOne>},
          {"idsia_lm_delta_net_attnnorm", normalised_delta_net},
          {"idsia_lm_dpfp2_delta", delta_net<language_model, fw::Dpfp<2>>},
          {"idsia_lm_sum_linear", sum_linear},
          {"idsia_layer_delta_net", delta_net<algorithmic, fw::EluPlusOne>},
          {"idsia_layer_linear_attn", layer_linear_attention}};
}

}  // namespace reference
