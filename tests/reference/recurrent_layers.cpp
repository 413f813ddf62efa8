#include <fastweights/feature_maps/chain.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/layers/memory/fast_weight_layer.hpp>
#include <fastweights/layers/memory/self_referential_layer.hpp>
#include <fastweights/layers/norms/layer_norm.hpp>
#include <fastweights/memories/recurrent/delta_delta_net.hpp>
#include <fastweights/memories/recurrent/delta_lstm.hpp>
#include <fastweights/memories/recurrent/delta_mlp.hpp>
#include <fastweights/memories/recurrent/delta_rnn.hpp>
#include <fastweights/memories/recurrent/recurrent_delta_net.hpp>

#include "case.hpp"
#include "self_referential.hpp"

namespace reference {

namespace {

// A whole layer of the sources: o = (LN(x) or x) + layer(LN(x) or x).
struct Residual {
  bool normed_branch, normed_residual;
};
const Residual algorithmic{true, false}, language_model{true, true}, self_referential{false, true};

// `for_each_part(layer, f)` calls f(name, i, first row, our block) for our blocks, which are rows
// of matrix i of the file's array `name`. With first row −1, our block is this matrix transposed.
template <class L, class Parts>
void run_layer(Case& file, L layer, const Residual& residual, const Parts& for_each_part) {
  Array x = file["x"], up = file["up_o"], o = file.like("o"), dx = file.like("x");
  std::map<std::string, Array> gradients;
  for_each_part(layer, [&](const std::string& name, Index i, Index row, auto ours) {
    Array theirs = file[name];
    if (row < 0)
      ours = theirs.matrix(i).transpose();
    else
      ours = theirs.matrix(i).middleRows(row, ours.rows());
    gradients[name] = file.like(name, 0);
  });
  fw::LayerNorm<double> norm(x.axis(2));
  norm.weight = file["p_layer_norm__weight"].flat();
  norm.bias = file["p_layer_norm__bias"].flat();

  auto dlayer = layer;
  auto dnorm = norm;
  fw::set_zero_parameters(dlayer);
  fw::set_zero_parameters(dnorm);
  typename L::Trace trace;
  fw::LayerNorm<double>::Trace norm_trace;
  for (Index b = 0; b < x.axis(1); ++b) {
    const Matrix in = x.time_first(b), dy = up.time_first(b);
    Matrix normed = 0 * in, y = 0 * in, dbranch = 0 * in, din = 0 * in;
    auto state = layer.initial_state();
    auto none = norm.initial_state();
    norm.forward(none, in, normed, norm_trace, fw::Pass::train);
    const Matrix& branch = residual.normed_branch ? normed : in;
    layer.forward(state, branch, y, trace, fw::Pass::train);
    o.time_first(b) = y + (residual.normed_residual ? normed : in);
    layer.backward(branch, trace, dy, dbranch, dlayer);
    Matrix dnormed = 0 * in;
    if (residual.normed_branch) dnormed += dbranch;
    if (residual.normed_residual) dnormed += dy;
    norm.backward(in, norm_trace, dnormed, din, dnorm);
    if (!residual.normed_branch) din += dbranch;
    if (!residual.normed_residual) din += dy;
    dx.time_first(b) = din;
  }
  file.forward("o", o);
  file.gradient("grad_x", dx);

  for_each_part(dlayer, [&](const std::string& name, Index i, Index row, auto ours) {
    // Heads may share an array.
    if (row < 0)
      gradients[name].matrix(i) += ours.transpose();
    else
      gradients[name].matrix(i).middleRows(row, ours.rows()) += ours;
  });
  gradients["p_layer_norm__weight"] = file.like("p_layer_norm__weight");
  gradients["p_layer_norm__weight"].flat() = dnorm.weight;
  gradients["p_layer_norm__bias"] = file.like("p_layer_norm__bias");
  gradients["p_layer_norm__bias"].flat() = dnorm.bias;
  for (const auto& [name, array] : gradients) file.gradient("grad_" + name, array);
}

// The rows of a projection for net `net`. Rows of keys and values are ordered by net, then head;
// rows of strengths by head, then net.
struct Part {
  fw::Linear<double>* map;
  Index rows, net = 0, nets = 1;
  Index first_row(Index h, Index heads) const {
    return rows > 1 ? (net * heads + h) * rows : h * nets + net;
  }
};

// The rows of a slow net are ordered by head, then by part.
template <class L, class F>
void for_each_slow_row(const std::string& slow, const L& layer, const std::vector<Part>& parts,
                       const F& f) {
  Index row = 0;
  for (Index h = 0; h < layer.heads; ++h)
    for (const auto& part : parts) {
      f(slow, 0, row, part.map->weight.middleRows(part.first_row(h, layer.heads), part.rows));
      row += part.rows;
    }
}

Index size_of_heads(const Case& file, const std::string& out) {
  return file[out].axis(1) / std::stoll(file.setting("heads"));
}
fw::FastWeightOptions options_of(const Case& file, double scale) {
  return {.d_model = file["x"].axis(2), .heads = std::stoll(file.setting("heads")), .scale = scale};
}

using SumElu = fw::SumNormalised<fw::EluPlusOne>;

void delta_rnn(Case& file, const std::string& slow, const std::string& out, bool scales,
               const Residual& residual) {
  const Index d = size_of_heads(file, out);
  const double scale = scales ? 1 / std::sqrt(double(d)) : 1;
  run_layer(file,
            fw::FastWeightLayer<fw::DeltaRnn<double>, SumElu>(
                options_of(file, scale), fw::DeltaRnn<double>({.key_size = d})),
            residual, [&](auto& layer, const auto& f) {
              auto& w = layer.write;
              const std::vector<Part> parts{{&w.query, d},           {&w.key, d},
                                            {&w.value, d},           {&w.recurrent_key, d},
                                            {&w.recurrent_value, d}, {&w.beta, 1},
                                            {&w.recurrent_beta, 1}};
              for_each_slow_row(slow, layer, parts, f);
              f(out, 0, 0, layer.output.weight.middleRows(0, layer.output.outputs()));
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
  run_layer(file,
            fw::FastWeightLayer<fw::DeltaLstm<double>, SumElu>(
                options_of(file, 1 / std::sqrt(double(d))), fw::DeltaLstm<double>({.key_size = d})),
            language_model, [&](auto& layer, const auto& f) {
              auto& w = layer.write;
              std::vector<Part> parts;
              for (Index g = 0; g < 3; ++g)
                for (auto* map : {&w.query, &w.key, &w.value, &w.recurrent_key, &w.recurrent_value})
                  parts.push_back({map, d, g});
              for (Index g = 0; g < 3; ++g)
                for (auto* map : {&w.beta, &w.recurrent_beta}) parts.push_back({map, 1, g, 3});
              for_each_slow_row("p_qkv_net__weight", layer, parts, f);
              f("p_o_net__weight", 0, 0, layer.output.weight.middleRows(0, layer.output.outputs()));
            });
}

void layer_recurrent_delta_net(Case& file) {
  const Index d = size_of_heads(file, "p_out_linear__weight");
  run_layer(
      file,
      fw::FastWeightLayer<fw::RecurrentDeltaNet<double>>(
          options_of(file, 1), fw::RecurrentDeltaNet<double>({.key_size = d})),
      algorithmic, [&](auto& layer, const auto& f) {
        auto& w = layer.write;
        const std::vector<Part> parts{{&w.query, d}, {&w.key, d}, {&w.value, d}, {&w.beta, 1}};
        for_each_slow_row("p_slow_net__weight", layer, parts, f);
        f("p_out_linear__weight", 0, 0, layer.output.weight.middleRows(0, layer.output.outputs()));
        for (Index h = 0; h < layer.heads; ++h) {
          auto& slow = layer.slow[static_cast<std::size_t>(h)];
          f("p_R_q", h, -1, slow.query.middleRows(0, d));
          f("p_R_k", h, -1, slow.key.middleRows(0, d));
          f("p_R_v", h, -1, slow.value.middleRows(0, d));
          f("p_r_b", h, -1, slow.beta.middleRows(0, d));
        }
      });
}

void language_model_delta_delta(Case& file) {
  const Index d = size_of_heads(file, "p_o_net__weight");
  run_layer(file,
            fw::FastWeightLayer<fw::DeltaDeltaNet<double>>(options_of(file, 1),
                                                           fw::DeltaDeltaNet<double>(d)),
            language_model, [&](auto& layer, const auto& f) {
              auto& w = layer.write;
              const std::vector<Part> parts{
                  {&w.query, d}, {&w.key, d}, {&w.value, 3 * d + 1}, {&w.beta, 1}};
              for_each_slow_row("p_slow_net__weight", layer, parts, f);
              f("p_o_net__weight", 0, 0, layer.output.weight.middleRows(0, layer.output.outputs()));
            });
}

// The slow net has rows for two fast blocks in every head, of which the source uses the first: the
// queries of all heads, then for every head four keys and four values, then two strengths a head.
void language_model_delta_mlp(Case& file) {
  const std::string slow = "p_qkv_net__weight";
  const Index d = size_of_heads(file, "p_o_net__weight"), d_model = file["x"].axis(2),
              heads = std::stoll(file.setting("heads")), hidden = 4 * d_model / heads;
  run_layer(file,
            fw::FastWeightLayer<fw::DeltaMlp<double>>(options_of(file, 1),
                                                      fw::DeltaMlp<double>(d, hidden)),
            language_model, [&](auto& layer, const auto& f) {
              auto& w = layer.write;
              for (Index h = 0; h < heads; ++h) {
                const auto rows = [&](auto& map, Index count, Index first) {
                  f(slow, 0, first, map.weight.middleRows(h * count, count));
                };
                const Index keys = heads * d + h * 4 * (d + hidden),
                            values = keys + 2 * (d + hidden),
                            strengths = heads * (d + 4 * (d + hidden)) + 2 * h;
                rows(layer.read.query, d, h * d);
                rows(w.key, d, keys);
                rows(w.hidden_key, hidden, keys + d);
                rows(w.value, hidden, values);
                rows(w.hidden_value, d, values + hidden);
                rows(w.beta, 1, strengths);
                rows(w.hidden_beta, 1, strengths + 1);
                auto& norm = layer.slow[static_cast<std::size_t>(h)];
                f("p_fast_net_layer_norms__0__weight", 0, -1, norm.weight.middleRows(0, d));
                f("p_fast_net_layer_norms__0__bias", 0, -1, norm.bias.middleRows(0, d));
              }
              f("p_o_net__weight", 0, 0, layer.output.weight.middleRows(0, layer.output.outputs()));
            });
}

void layer_self_referential(Case& file) {
  const Index d = size_of_heads(file, "p_out_linear__weight");
  const Index d_model = file["x"].axis(2);
  run_layer(file, fw::SelfReferentialLayer<double>({.d_model = d_model, .heads = d_model / d}),
            self_referential, [&](auto& layer, const auto& f) {
              f("p_out_linear__weight", 0, 0, layer.output.weight.middleRows(0, d_model));
              for (Index h = 0; h < d_model / d; ++h)
                for (const auto& [name, first, rows] : self_referential_blocks(d, d))
                  f("p_" + name, h, -1,
                    layer.initial[static_cast<std::size_t>(h)].W.middleRows(first, rows));
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
