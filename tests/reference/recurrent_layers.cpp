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

namespace reference {

namespace {

// The arrays of one file with a memory's inputs or their gradients, by name.
using Arrays = std::map<std::string, Array>;

Arrays arrays_of(const Case& file, const std::vector<std::string>& names) {
  Arrays arrays;
  for (const auto& name : names) arrays[name] = file[name];
  return arrays;
}
Arrays zeros_like(const Case& file, const std::vector<std::string>& names) {
  Arrays arrays;
  for (const auto& name : names) arrays[name] = file.like(name, 0);
  return arrays;
}

// The position of head h of sequence b in an array [B, H, …], or [H, …] if all sequences share it.
struct Position {
  Index b, h, head;  // head counts over all sequences
};

// Runs every head of every sequence, with and without the gradient of the final state. `head` is
// head(position, whether with the final state, inputs, their gradients, o, finals).
template <class F>
void run_heads(Case& file, const std::string& sequence, const std::vector<std::string>& names,
               const std::vector<std::string>& finals, const F& head) {
  Arrays in = arrays_of(file, names), final_states = zeros_like(file, finals);
  Array o = file.like("o");
  const Index batch = in[sequence].axis(0), heads = in[sequence].axis(2);
  for (const bool with_finals : {true, false}) {
    Arrays din = zeros_like(file, names);
    for (Index b = 0; b < batch; ++b)
      for (Index h = 0; h < heads; ++h)
        head(Position{b, h, b * heads + h}, with_finals, in, din, o, final_states);
    for (const auto& [name, array] : din)
      file.gradient((with_finals ? "grad_" : "gradout_") + name, array);
  }
  file.forward("o", o);
  for (const auto& [name, array] : final_states) file.forward(name, array);
}

// The cores have an input z_t = W_t q_t, which our memories compute. So W has the columns z_t,
// writes do not change it, and query t reads column t. The gradient of z is that of W.
struct Unwritten {
  Index dv, nets, steps;
  Matrix keys = Matrix::Zero(steps, nets*steps), values = Matrix::Zero(dv, nets*steps),
         betas = Matrix::Zero(nets, steps), queries = Matrix::Zero(steps, nets*steps);
  Unwritten(Index rows, Index of, Index length) : dv(rows), nets(of), steps(length) {
    for (Index t = 0; t < steps; ++t) queries.middleCols(t * nets, nets).row(t).setOnes();
  }
};

void delta_rnn_core(Case& file) {
  run_heads(
      file, "z", {"z", "rk", "rv", "rbeta", "R0", "h0"}, {"final_R"},
      [&](const Position& at, bool with_finals, Arrays& in, Arrays& din, Array& o, Arrays& finals) {
        using M = fw::DeltaRnn<double>;
        const Index dv = in["z"].axis(3), steps = in["z"].axis(1);
        const M m({.key_size = steps, .value_size = dv});
        Unwritten none(dv, 1, steps), dnone(dv, 1, steps);
        fw::StateOf<M> state{in["z"].head(at.b, at.h), in["R0"].matrix(at.head),
                             in["h0"].matrix(at.b).row(at.h)};
        auto ds = fw::zero_gradient(m);
        Array up_R = file["up_final_R"], up_o = file["up_o"];
        if (with_finals) ds.R = up_R.matrix(at.head);
        const fw::WriteSequence<M> tokens{none.keys,
                                          none.values,
                                          none.betas,
                                          none.queries,
                                          in["rk"].head(at.b, at.h),
                                          in["rv"].head(at.b, at.h),
                                          in["rbeta"].numbers(at.b, at.h)};
        fw::Checkpoints<M> checkpoints;
        fw::scan(m, state, tokens, {}, {o.head(at.b, at.h)}, checkpoints);
        finals["final_R"].matrix(at.head) = state.R;
        fw::backward(
            m, checkpoints, tokens, {}, {up_o.head(at.b, at.h)}, ds,
            {dnone.keys, dnone.values, dnone.betas, dnone.queries, din["rk"].head(at.b, at.h),
             din["rv"].head(at.b, at.h), din["rbeta"].numbers(at.b, at.h)},
            {});
        din["z"].head(at.b, at.h) = ds.W;
        din["R0"].matrix(at.head) = ds.R;
        din["h0"].matrix(at.b).row(at.h) = ds.output;
      });
}

// Copies column t of net g from or to the tokens of a Delta LSTM, which has one column per net.
template <class From, class To> void gather(From&& array, To& tokens, Index g, Index nets) {
  for (Index t = 0; t < array.cols(); ++t) tokens.col(t * nets + g) = array.col(t);
}
template <class From, class To> void scatter(const From& tokens, To&& array, Index g, Index nets) {
  for (Index t = 0; t < array.cols(); ++t) array.col(t) = tokens.col(t * nets + g);
}

void delta_lstm_core(Case& file) {
  using M = fw::DeltaLstm<double>;
  constexpr Index nets = 3;
  const std::string letters = "iuo";
  std::vector<std::string> names{"h0", "c0"}, finals{"final_cell"};
  for (const char g : letters) {
    for (const char* part : {"z", "k", "v", "b"}) names.push_back(std::string(part) + g);
    names.push_back(std::string("R") + g + "0");
    finals.push_back(std::string("final_R") + g);
  }
  run_heads(file, "zi", names, finals,
            [&](const Position& at, bool with_finals, Arrays& in, Arrays& din, Array& o,
                Arrays& final_states) {
              const Index dv = in["zi"].axis(3), steps = in["zi"].axis(1);
              const M m({.key_size = steps, .value_size = dv});
              Unwritten none(dv, nets, steps), dnone(dv, nets, steps);
              auto state = fw::initial_state(m), ds = fw::zero_gradient(m);
              Matrix keys(dv, nets * steps), values(dv, nets * steps), betas(nets, steps);
              const auto each_net = [&](auto& s, const auto& f) {
                f(0, s.input_gate), f(1, s.update), f(2, s.output_gate);
              };
              each_net(state, [&](Index g, auto& net) {
                const auto letter = letters.substr(static_cast<std::size_t>(g), 1);
                net.W = in["z" + letter].head(at.b, at.h);
                net.R = in["R" + letter + "0"].matrix(at.head);
                gather(in["k" + letter].head(at.b, at.h), keys, g, nets);
                gather(in["v" + letter].head(at.b, at.h), values, g, nets);
                betas.row(g) = in["b" + letter].head(at.b, at.h);
              });
              state.cell = in["c0"].matrix(at.b).row(at.h);
              state.output = in["h0"].matrix(at.b).row(at.h);
              if (with_finals) {
                each_net(ds, [&](Index g, auto& net) {
                  Array up = file["up_final_R" + letters.substr(static_cast<std::size_t>(g), 1)];
                  net.R = up.matrix(at.head);
                });
                Array up = file["up_final_cell"];
                ds.cell = up.matrix(at.b).row(at.h);
              }
              const fw::WriteSequence<M> tokens{none.keys, none.values, none.betas, none.queries,
                                                keys,      values,      betas};
              Array up_o = file["up_o"];
              fw::Checkpoints<M> checkpoints;
              fw::scan(m, state, tokens, {}, {o.head(at.b, at.h)}, checkpoints);
              Matrix dkeys = 0 * keys, dvalues = 0 * values, dbetas = 0 * betas;
              fw::backward(
                  m, checkpoints, tokens, {}, {up_o.head(at.b, at.h)}, ds,
                  {dnone.keys, dnone.values, dnone.betas, dnone.queries, dkeys, dvalues, dbetas},
                  {});
              each_net(state, [&](Index g, auto& net) {
                const auto letter = letters.substr(static_cast<std::size_t>(g), 1);
                final_states["final_R" + letter].matrix(at.head) = net.R;
              });
              final_states["final_cell"].matrix(at.b).row(at.h) = state.cell;
              each_net(ds, [&](Index g, auto& net) {
                const auto letter = letters.substr(static_cast<std::size_t>(g), 1);
                din["z" + letter].head(at.b, at.h) = net.W;
                din["R" + letter + "0"].matrix(at.head) = net.R;
                scatter(dkeys, din["k" + letter].head(at.b, at.h), g, nets);
                scatter(dvalues, din["v" + letter].head(at.b, at.h), g, nets);
                din["b" + letter].head(at.b, at.h) = dbetas.row(g);
              });
              din["c0"].matrix(at.b).row(at.h) = ds.cell;
              din["h0"].matrix(at.b).row(at.h) = ds.output;
            });
}

// The batch shares the recurrent weights, which multiply row vectors from the right.
void recurrent_delta_net_core(Case& file) {
  run_heads(
      file, "qx", {"qx", "kx", "vx", "bx", "R_q", "R_k", "R_v", "r_b", "W0", "y0"}, {"final_W"},
      [&](const Position& at, bool with_finals, Arrays& in, Arrays& din, Array& o, Arrays& finals) {
        using M = fw::RecurrentDeltaNet<double>;
        const M m({.key_size = in["kx"].axis(3), .value_size = in["vx"].axis(3)});
        auto state = fw::initial_state(m), ds = fw::zero_gradient(m);
        state.W = in["W0"].matrix(at.head);
        state.output = in["y0"].matrix(at.b).row(at.h);
        state.slow.key = in["R_k"].matrix(at.h).transpose();
        state.slow.query = in["R_q"].matrix(at.h).transpose();
        state.slow.value = in["R_v"].matrix(at.h).transpose();
        state.slow.beta = in["r_b"].matrix().row(at.h);
        Array up_W = file["up_final_W"], up_o = file["up_o"];
        if (with_finals) ds.W = up_W.matrix(at.head);
        const auto tokens = [&](Arrays& from) {
          return std::make_tuple(from["kx"].head(at.b, at.h), from["vx"].head(at.b, at.h),
                                 from["bx"].numbers(at.b, at.h), from["qx"].head(at.b, at.h));
        };
        auto [k, v, b, q] = tokens(in);
        auto [dk, dv, db, dq] = tokens(din);
        fw::Checkpoints<M> checkpoints;
        fw::scan(m, state, {k, v, b, q}, {}, {o.head(at.b, at.h)}, checkpoints);
        finals["final_W"].matrix(at.head) = state.W;
        fw::backward(m, checkpoints, {k, v, b, q}, {}, {up_o.head(at.b, at.h)}, ds,
                     {dk, dv, db, dq}, {});
        din["W0"].matrix(at.head) = ds.W;
        din["y0"].matrix(at.b).row(at.h) = ds.output;
        din["R_k"].matrix(at.h) += ds.slow.key.transpose();
        din["R_q"].matrix(at.h) += ds.slow.query.transpose();
        din["R_v"].matrix(at.h) += ds.slow.value.transpose();
        din["r_b"].matrix().row(at.h) += ds.slow.beta;
      });
}

// Calls f(name, first row, rows) for the blocks of a self-referential matrix.
template <class F> void for_each_block(Index dk, Index dv, const F& f) {
  f("W_y", 0, dv);
  f("W_q", dv, dk);
  f("W_k", dv + dk, dk);
  f("w_b", dv + 2 * dk, 4);
}

void self_referential_core(Case& file) {
  run_heads(
      file, "x", {"x", "W_y", "W_q", "W_k", "w_b"},
      {"final_W_y", "final_W_q", "final_W_k", "final_w_b"},
      [&](const Position& at, bool with_finals, Arrays& in, Arrays& din, Array& o, Arrays& finals) {
        using M = fw::SelfReferentialMatrix<double>;
        const Index dv = o.axis(3), dk = in["x"].axis(3);
        const M m({dk, dv});
        auto state = fw::initial_state(m), ds = fw::zero_gradient(m);
        Array up_o = file["up_o"];
        for_each_block(dv, dk, [&](const std::string& name, Index row, Index rows) {
          state.W.middleRows(row, rows) = in[name].matrix(at.head).transpose();
          Array up = file["up_final_" + name];
          if (with_finals) ds.W.middleRows(row, rows) = up.matrix(at.head).transpose();
        });
        const auto x = in["x"].head(at.b, at.h);
        Matrix dwritten = Matrix::Zero(dk, x.cols()), dread = dwritten;
        fw::Checkpoints<M> checkpoints;
        fw::scan(m, state, {x}, {x}, {o.head(at.b, at.h)}, checkpoints);
        fw::backward(m, checkpoints, {x}, {x}, {up_o.head(at.b, at.h)}, ds, {dwritten}, {dread});
        din["x"].head(at.b, at.h) = dwritten + dread;
        for_each_block(dv, dk, [&](const std::string& name, Index row, Index rows) {
          finals["final_" + name].matrix(at.head) = state.W.middleRows(row, rows).transpose();
          din[name].matrix(at.head) = ds.W.middleRows(row, rows).transpose();
        });
      });
}

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
  Arrays gradients;
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
                for_each_block(d, d, [&](const std::string& name, Index row, Index rows) {
                  f("p_" + name, h, -1,
                    layer.initial[static_cast<std::size_t>(h)].W.middleRows(row, rows));
                });
            });
}

}  // namespace

std::map<std::string, Test> recurrent_programmer_tests() {
  return {{"idsia_delta_rnn_core", delta_rnn_core},
          {"idsia_delta_lstm_core", delta_lstm_core},
          {"idsia_rdn_core", recurrent_delta_net_core},
          {"idsia_srwm_core", self_referential_core},
          {"idsia_layer_delta_rnn", layer_delta_rnn},
          {"idsia_layer_rdn", layer_recurrent_delta_net},
          {"idsia_layer_srwm", layer_self_referential},
          {"idsia_lm_delta_delta", language_model_delta_delta},
          {"idsia_lm_delta_mlp", language_model_delta_mlp},
          {"idsia_lm_delta_rnn", language_model_delta_rnn},
          {"idsia_lm_delta_lstm", language_model_delta_lstm}};
}

}  // namespace reference
