#include <fastweights/any_memory/table.hpp>

#include "rule_run.hpp"
#include "self_referential.hpp"

/// \file
/// Fast weight programmers whose files are more than the inputs of a memory.

namespace reference {

namespace {

using State = fw::AnyState<double>;

// a = W_a x, b = W_b x; W ← σ(W + a bᵀ); y = W x.
void programmer(Case& file, const std::string& memory) {
  Array x = file["x"], up = file["up_y"], y = file.like("y"), W0 = file["W0"],
        up_final = file["up_final_W"], final_W = file.like("final_W"), W_a = file["W_a"],
        W_b = file["W_b"];
  const Memory m =
      fw::make_memory<double>(memory, {.key_size = W_b.axis(0), .value_size = W_a.axis(0)});
  for (const std::string kind : {"grad_", "gradout_"}) {
    Array dx = file.like("x"), dW0 = file.like("W0"), dW_a = file.like("W_a", 0),
          dW_b = file.like("W_b", 0);
    for (Index i = 0; i < x.axis(0); ++i) {
      Matrix in = x.batch(i), a = W_a.matrix() * in, b = W_b.matrix() * in, din = 0 * in,
             da = 0 * a, db = 0 * b;
      State state = m.initial_state(), ds = m.zero_gradient();
      entries(state, "W") = W0.matrix(i);
      if (kind == "grad_") entries(ds, "W") = up_final.matrix(i);
      scan_and_backward(m, state, {b, a}, {in}, {y.batch(i)}, {up.batch(i)}, ds, {db, da}, {din});
      final_W.matrix(i) = entries(state, "W");
      dW0.matrix(i) = entries(ds, "W");
      dW_a.matrix() += da * in.transpose();
      dW_b.matrix() += db * in.transpose();
      dx.batch(i) = din + W_a.matrix().transpose() * da + W_b.matrix().transpose() * db;
    }
    file.gradient(kind + "x", dx);
    file.gradient(kind + "W0", dW0);
    file.gradient(kind + "W_a", dW_a);
    file.gradient(kind + "W_b", dW_b);
  }
  file.forward("y", y);
  file.forward("final_W", final_W);
}

// The arrays of one file with a memory's inputs or their gradients, by name.
using Arrays = std::map<std::string, Array>;

Arrays zeros_like(const Case& file, const std::vector<std::string>& names) {
  Arrays arrays;
  for (const auto& name : names) arrays[name] = file.like(name, 0);
  return arrays;
}

// One head of one sequence: where it is, with or without the gradient of the final state, and the
// arrays of the file.
struct Head {
  Index b, h, head;  // head counts over all sequences
  bool with_finals;
  Arrays &in, &din;
  Array& o;
  Array& up_o;
  Arrays& finals;

  // The entries of a state [B, H, d]: one row of an array.
  auto row(Array& array) const { return array.matrix(b).row(h).transpose(); }
  fw::AnyView<double> input(const std::string& name) const { return in[name].view(b, h); }
  fw::AnyView<double> gradient(const std::string& name) const { return din[name].view(b, h); }
  // Computes outputs and gradients.
  void run(const Memory& m, State& state, State& ds, const Views& written, const Views& read,
           const Views& dwritten, const Views& dread) const {
    scan_and_backward(m, state, written, read, {o.view(b, h)}, {up_o.view(b, h)}, ds, dwritten,
                      dread);
  }
};

// Calls f for every head of every sequence, with and without the gradient of the final state.
void run_heads(Case& file, const std::string& sequence, const std::vector<std::string>& names,
               const std::vector<std::string>& finals, const std::function<void(Head)>& f) {
  Arrays in, final_states = zeros_like(file, finals);
  for (const auto& name : names) in[name] = file[name];
  Array o = file.like("o"), up_o = file["up_o"];
  const Index batch = in[sequence].axis(0), heads = in[sequence].axis(2);
  for (const bool with_finals : {true, false}) {
    Arrays din = zeros_like(file, names);
    for (Index b = 0; b < batch; ++b)
      for (Index h = 0; h < heads; ++h)
        f({b, h, b * heads + h, with_finals, in, din, o, up_o, final_states});
    for (const auto& [name, array] : din)
      file.gradient((with_finals ? "grad_" : "gradout_") + name, array);
  }
  file.forward("o", o);
  for (const auto& [name, array] : final_states) file.forward(name, array);
}

// The cores have an input z_t = W_t q_t, which our memories compute. So W has the columns z_t,
// writes do not change it, and query t reads column t. The gradient of z is that of W.
struct Unwritten {
  Matrix keys, values, betas, queries;
  Unwritten(Index dv, Index nets, Index steps)
      : keys(Matrix::Zero(steps, nets * steps)),
        values(Matrix::Zero(dv, nets * steps)),
        betas(Matrix::Zero(nets, steps)),
        queries(Matrix::Zero(steps, nets * steps)) {
    for (Index t = 0; t < steps; ++t) queries.middleCols(t * nets, nets).row(t).setOnes();
  }
  Views views(const Views& more) {
    Views all{keys, values, betas, queries};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

void delta_rnn_core(Case& file) {
  Array up_R = file["up_final_R"];
  run_heads(file, "z", {"z", "rk", "rv", "rbeta", "R0", "h0"}, {"final_R"}, [&](const Head& at) {
    Array& z = at.in["z"];
    const Index dv = z.axis(3), steps = z.axis(1);
    const Memory m = fw::make_memory<double>("DeltaRnn", {.key_size = steps, .value_size = dv});
    Unwritten none(dv, 1, steps), dnone(dv, 1, steps);
    State state = m.initial_state(), ds = m.zero_gradient();
    entries(state, "W") = z.head(at.b, at.h);
    entries(state, "R") = at.in["R0"].matrix(at.head);
    entries(state, "output") = at.row(at.in["h0"]);
    if (at.with_finals) entries(ds, "R") = up_R.matrix(at.head);
    at.run(m, state, ds, none.views({at.input("rk"), at.input("rv"), at.input("rbeta")}), {},
           dnone.views({at.gradient("rk"), at.gradient("rv"), at.gradient("rbeta")}), {});
    at.finals["final_R"].matrix(at.head) = entries(state, "R");
    at.din["z"].head(at.b, at.h) = entries(ds, "W");
    at.din["R0"].matrix(at.head) = entries(ds, "R");
    at.row(at.din["h0"]) = entries(ds, "output");
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
  struct Net {
    Index g;
    std::string letter, path;
  };
  const std::vector<Net> nets{
      {0, "i", "input_gate."}, {1, "u", "update."}, {2, "o", "output_gate."}};
  const Index count = 3;
  std::vector<std::string> names{"h0", "c0"}, finals{"final_cell"};
  for (const Net& net : nets) {
    for (const char* part : {"z", "k", "v", "b"}) names.push_back(part + net.letter);
    names.push_back("R" + net.letter + "0");
    finals.push_back("final_R" + net.letter);
  }
  run_heads(file, "zi", names, finals, [&](const Head& at) {
    const Index dv = at.in["zi"].axis(3), steps = at.in["zi"].axis(1);
    const Memory m = fw::make_memory<double>("DeltaLstm", {.key_size = steps, .value_size = dv});
    Unwritten none(dv, count, steps), dnone(dv, count, steps);
    State state = m.initial_state(), ds = m.zero_gradient();
    Matrix keys(dv, count * steps), values(dv, count * steps), betas(count, steps);
    for (const auto& [g, letter, path] : nets) {
      entries(state, path + "W") = at.in["z" + letter].head(at.b, at.h);
      entries(state, path + "R") = at.in["R" + letter + "0"].matrix(at.head);
      gather(at.in["k" + letter].head(at.b, at.h), keys, g, count);
      gather(at.in["v" + letter].head(at.b, at.h), values, g, count);
      betas.row(g) = at.in["b" + letter].head(at.b, at.h);
      Array up = file["up_final_R" + letter];
      if (at.with_finals) entries(ds, path + "R") = up.matrix(at.head);
    }
    entries(state, "cell") = at.row(at.in["c0"]);
    entries(state, "output") = at.row(at.in["h0"]);
    Array up = file["up_final_cell"];
    if (at.with_finals) entries(ds, "cell") = at.row(up);
    Matrix dkeys = 0 * keys, dvalues = 0 * values, dbetas = 0 * betas;
    at.run(m, state, ds, none.views({keys, values, betas}), {},
           dnone.views({dkeys, dvalues, dbetas}), {});
    for (const auto& [g, letter, path] : nets) {
      at.finals["final_R" + letter].matrix(at.head) = entries(state, path + "R");
      at.din["z" + letter].head(at.b, at.h) = entries(ds, path + "W");
      at.din["R" + letter + "0"].matrix(at.head) = entries(ds, path + "R");
      scatter(dkeys, at.din["k" + letter].head(at.b, at.h), g, count);
      scatter(dvalues, at.din["v" + letter].head(at.b, at.h), g, count);
      at.din["b" + letter].head(at.b, at.h) = dbetas.row(g);
    }
    at.row(at.finals["final_cell"]) = entries(state, "cell");
    at.row(at.din["c0"]) = entries(ds, "cell");
    at.row(at.din["h0"]) = entries(ds, "output");
  });
}

// The batch shares the recurrent weights, which multiply row vectors from the right.
void recurrent_delta_net_core(Case& file) {
  const std::map<std::string, std::string> weights = {
      {"slow.key", "R_k"}, {"slow.query", "R_q"}, {"slow.value", "R_v"}};
  Array up_W = file["up_final_W"];
  run_heads(
      file, "qx", {"qx", "kx", "vx", "bx", "R_q", "R_k", "R_v", "r_b", "W0", "y0"}, {"final_W"},
      [&](const Head& at) {
        const Memory m = fw::make_memory<double>(
            "RecurrentDeltaNet",
            {.key_size = at.in["kx"].axis(3), .value_size = at.in["vx"].axis(3)});
        State state = m.initial_state(), ds = m.zero_gradient();
        entries(state, "W") = at.in["W0"].matrix(at.head);
        entries(state, "output") = at.row(at.in["y0"]);
        for (const auto& [path, array] : weights)
          entries(state, path) = at.in[array].matrix(at.h).transpose();
        entries(state, "slow.beta") = at.in["r_b"].matrix().row(at.h).transpose();
        if (at.with_finals) entries(ds, "W") = up_W.matrix(at.head);
        at.run(m, state, ds, {at.input("kx"), at.input("vx"), at.input("bx"), at.input("qx")}, {},
               {at.gradient("kx"), at.gradient("vx"), at.gradient("bx"), at.gradient("qx")}, {});
        at.finals["final_W"].matrix(at.head) = entries(state, "W");
        at.din["W0"].matrix(at.head) = entries(ds, "W");
        at.row(at.din["y0"]) = entries(ds, "output");
        for (const auto& [path, array] : weights)
          at.din[array].matrix(at.h) += entries(ds, path).transpose();
        at.din["r_b"].matrix().row(at.h) += entries(ds, "slow.beta").transpose();
      });
}

void self_referential_core(Case& file) {
  run_heads(file, "x", {"x", "W_y", "W_q", "W_k", "w_b"},
            {"final_W_y", "final_W_q", "final_W_k", "final_w_b"}, [&](const Head& at) {
              Array& inputs = at.in["x"];
              const Index dv = at.o.axis(3), dk = inputs.axis(3);
              const Memory m = fw::make_memory<double>("SelfReferentialMatrix",
                                                       {.key_size = dk, .value_size = dv});
              State state = m.initial_state(), ds = m.zero_gradient();
              auto W = entries(state, "W"), dW = entries(ds, "W");
              const auto blocks = self_referential_blocks(dk, dv);
              for (const auto& [name, first, rows] : blocks) {
                W.middleRows(first, rows) = at.in[name].matrix(at.head).transpose();
                Array up = file["up_final_" + name];
                if (at.with_finals) dW.middleRows(first, rows) = up.matrix(at.head).transpose();
              }
              Matrix dwritten = Matrix::Zero(dk, inputs.axis(1)), dread = dwritten;
              const Views x = {at.input("x")};
              at.run(m, state, ds, x, x, {dwritten}, {dread});
              at.din["x"].head(at.b, at.h) = dwritten + dread;
              for (const auto& [name, first, rows] : blocks) {
                at.finals["final_" + name].matrix(at.head) = W.middleRows(first, rows).transpose();
                at.din[name].matrix(at.head) = dW.middleRows(first, rows).transpose();
              }
            });
}

}  // namespace

std::map<std::string, Test> programmer_tests() {
  return {{"own_fwp1991_identity", [](Case& f) { programmer(f, "IdentityProgrammer1991"); }},
          {"own_fwp1991_sigmoid", [](Case& f) { programmer(f, "SigmoidProgrammer1991"); }},
          {"own_fwp1991_tanh", [](Case& f) { programmer(f, "Programmer1991"); }},
          {"idsia_delta_rnn_core", delta_rnn_core},
          {"idsia_delta_lstm_core", delta_lstm_core},
          {"idsia_rdn_core", recurrent_delta_net_core},
          {"idsia_srwm_core", self_referential_core}};
}

}  // namespace reference
