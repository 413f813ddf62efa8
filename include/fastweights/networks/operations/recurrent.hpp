#pragma once

#include <cmath>
#include <fastweights/core/stability.hpp>
#include <fastweights/math/products.hpp>
#include <fastweights/networks/operations/recurrent_cells.hpp>
#include <fastweights/networks/operations/weights.hpp>
#include <string>
#include <vector>

/// \file
/// Recurrent nets: rnn(x, …), lstm(x, …) and gru(x, …), with PyTorch's names, shapes and order of
/// the gates. Recur runs a cell (recurrent_cells.hpp) over the tokens of all sequences.

namespace fw::inline FASTWEIGHTS_ABI::networks {

namespace detail {

/// z += W h, one column for every sequence. Allocates nothing at any size.
template <class Z, class W, class H> void add_weighted(Z& z, const W& weight, const H& h) {
  if (h.cols() == 1)
    z.col(0).noalias() += weight * h.col(0);
  else
    fw::detail::add_product(z, weight, h);
}

/// Calls f(sequence, column) for every sequence that has a token t.
template <class S, class F> void for_each_token_at(const Forward<S>& run, Index t, const F& f) {
  for (Index b = 0; b < run.sequences(); ++b)
    if (t < run.streams.steps(b)) f(b, run.streams.first(b) + t);
}

/// dW += Σ dr_t h_{t−1}ᵀ for the output h of an operation, and h_{−1} in `initial`.
template <class S, class Initial>
void add_recurrent_gradient(const Backward<S>& run, const Matrix<S>& dr, const Initial& initial,
                            Matrix<S>& dweight) {
  const auto h = run.out();
  for (Index b = 0; b < run.sequences(); ++b) {
    const Index from = run.streams.first(b), count = run.streams.steps(b);
    if (count == 0) continue;
    dweight.noalias() += dr.col(from) * initial.col(b).transpose();
    fw::detail::add_product(dweight, dr.middleCols(from + 1, count - 1),
                            h.middleCols(from, count - 1).transpose());
  }
}

}  // namespace detail

/// The state of a recurrent net.
template <class S> struct RecurrentState {
  Matrix<S> hidden;  ///< one column for every sequence: h, and below it the c of an LSTM
  static constexpr auto names = fw::names("hidden");
};

/// A cell over the tokens of every sequence. The input is z; the weights are W_hh and b_hh, if the
/// node has it. One product a time step takes all sequences.
template <class S, class Cell> struct Recur final : Operation<S> {
  using Column = Eigen::Map<Eigen::Array<S, Dynamic, 1>>;
  using ConstColumn = Eigen::Map<const Eigen::Array<S, Dynamic, 1>>;
  Index units;  ///< R

  struct OwnTrace final : OperationTrace {
    Matrix<S> initial;           ///< the state before the first token
    Matrix<S> saved;             ///< by the cell, for every token
    Matrix<S> hidden, products;  ///< h_{t−1} and r of every sequence that has a token t
    Matrix<S> dstate, dproducts, transposed;
  };

  explicit Recur(Index n) : units(n) {}

  std::unique_ptr<StatePart> initial_state(Index sequences) const override {
    return std::make_unique<StateOfPart<RecurrentState<S>>>(
        RecurrentState<S>{Matrix<S>::Zero(Cell::states * units, sequences)});
  }
  std::unique_ptr<StatePart> state_gradient(Index sequences) const override {
    return initial_state(sequences);
  }
  void check_state(const Forward<S>& run) const override {
    fw::detail::check_extent(run.node.path, "the state",
                             run.template own_state<RecurrentState<S>>().hidden,
                             Cell::states * units, run.sequences());
  }
  std::unique_ptr<OperationTrace> make_trace() const override {
    return std::make_unique<OwnTrace>();
  }

  void forward(const Forward<S>& run) const override {
    const auto z = run.in();
    auto y = run.out();
    auto& state = run.template own_state<RecurrentState<S>>().hidden;
    auto& trace = run.template own_trace<OwnTrace>();
    if (run.train) trace.initial = state;
    trace.saved.resize(Cell::saved * units, run.train ? y.cols() : 1);
    trace.hidden.resize(units, run.sequences());
    trace.products.resize(Cell::gates * units, run.sequences());
    for (Index t = 0; t < run.streams.most_steps(); ++t) {
      trace.hidden = state.topRows(units);
      multiply_hidden(run, trace);
      detail::for_each_token_at(run, t, [&](Index b, Index token) {
        auto own = column(state, b), saved = column(trace.saved, run.train ? token : 0);
        Cell::step(constant(z, token), constant(trace.products, b), own, saved);
        y.col(token) = state.col(b).head(units);
      });
    }
  }

  void backward(const Backward<S>& run) const override {
    const auto dy = run.dout();
    auto dz = run.din();
    auto& trace = run.template own_trace<OwnTrace>();
    auto* const asked = run.template own_state_gradient<RecurrentState<S>>();
    trace.dstate.setZero(Cell::states * units, run.sequences());
    if (asked != nullptr) trace.dstate = asked->hidden;
    trace.products.setZero(Cell::gates * units, run.sequences());
    trace.dproducts.resize(Cell::gates * units, dy.cols());
    trace.transposed = run.weight().transpose();  // for products with contiguous columns
    for (Index t = run.streams.most_steps() - 1; t >= 0; --t) {
      detail::for_each_token_at(run, t, [&](Index b, Index token) {
        trace.dstate.col(b).head(units) += dy.col(token);
        auto dstate = column(trace.dstate, b), dr = column(trace.dproducts, token);
        auto dinput = column(trace.products, b);  // a buffer that is free here
        Cell::step_backward(constant(trace.saved, token), dstate, dinput, dr);
        dz.col(token) += trace.products.col(b);
        trace.products.col(b) = trace.dproducts.col(token);
      });
      auto dhidden = trace.dstate.topRows(units);
      detail::add_weighted(dhidden, trace.transposed, trace.products);
    }
    detail::add_recurrent_gradient(run, trace.dproducts, trace.initial.topRows(units),
                                   run.dweight());
    if (run.node.weights.size() > 1) run.dweight(1) += trace.dproducts.rowwise().sum();
    if (asked != nullptr) asked->hidden = trace.dstate;
  }

 private:
  template <class M> static Column column(M& m, Index t) {
    return {m.data() + t * m.colStride(), m.rows()};
  }
  template <class M> static ConstColumn constant(const M& m, Index t) {
    return {m.data() + t * m.colStride(), m.rows()};
  }

  static void multiply_hidden(const Forward<S>& run, OwnTrace& trace) {
    if (run.node.weights.size() > 1)
      trace.products.colwise() = run.weight(1).col(0);
    else
      trace.products.setZero();
    detail::add_weighted(trace.products, run.weight(), trace.hidden);
  }
};

namespace detail {

/// The net of a cell. `layer` is PyTorch's number in a stack, a part of the names.
template <class Cell, class S>
Value<S> recur(const Value<S>& x, const std::string& name, Index units, bool bias, Index layer) {
  Builder<S>& builder = *x.builder;
  constexpr Index most = Index(1) << 24;  // no product of sizes overflows
  if (units < 1 || units > most)
    fw::detail::throw_invalid({builder.path(name), ": ", std::to_string(units),
                               " hidden units, expected 1 to ", std::to_string(most)});
  const std::string number = "_l" + std::to_string(layer);
  const Initialiser draw = uniform_initialiser(1 / std::sqrt(double(units)));
  const Index rows = Cell::gates * units;
  const auto weight = [&](const std::string& of, const std::vector<Index>& axes) {
    return builder.weight((name.empty() ? of : name + "." + of) + number, axes, draw);
  };
  std::vector<std::size_t> input{weight("weight_ih", {rows, x.rows()})};
  std::vector<std::size_t> hidden{weight("weight_hh", {rows, units})};
  if (bias) {
    input.push_back(weight("bias_ih", {rows}));
    hidden.push_back(weight("bias_hh", {rows}));
  }
  const Value<S> z = builder.add(Linear<S>{}, rows, {x}, std::move(input));
  return builder.add(Recur<S, Cell>(units), units, {z}, std::move(hidden), name + number);
}

}  // namespace detail

/// Sets a square weight of a network to scale · I. As W_hh of a net of Relu it lets the hidden
/// units keep their values. Throws std::invalid_argument if there is no such weight, or the scale
/// is not finite.
template <class S>
void start_at_identity(Network<S>& network, const std::string& weight, double scale = 1) {
  fw::detail::check_finite("start_at_identity", "scale", scale);
  for (Weight<S>& each : network.weights)
    if (each.name == weight && each.rows() == each.cols()) {
      each.quantised = nullptr;
      each.value = S(scale) * Matrix<S>::Identity(each.rows(), each.cols());
      return;
    }
  fw::detail::throw_invalid({"start_at_identity: the network has no square weight ", weight});
}

/// A plain recurrent net of R = `units` hidden units.
///
///     h_t = f(W_ih x_t + b_ih + W_hh h_{t−1} + b_hh)        y_t = h_t        h_0 = 0
///
/// F is Tanh, or Relu: a net of Relu whose W_hh starts as the identity (start_at_identity) is the
/// IRNN (Le, Jaitly, Hinton 2015, arXiv 1504.00941). All three nets have PyTorch's names
/// `name`.weight_ih_l0, weight_hh_l0, bias_ih_l0 and bias_hh_l0, with the number of `layer`; a
/// stack is one call for each layer. An empty name gives the names of a net alone. Shapes: x D×T, y
/// R×T, W_ih gR×D, W_hh gR×R, both biases gR, with g = 1 here. Cost per token: 2 g R (D + R) flops.
/// Throws std::invalid_argument for sizes below 1. Elman 1990, Finding Structure in Time.
template <class F = Tanh, class S>
Value<S> rnn(const Value<S>& x, const std::string& name, Index units, bool bias = true,
             Index layer = 0) {
  return detail::recur<RnnCell<F>>(x, name, units, bias, layer);
}
/// A long short-term memory with forget gate. Names and shapes: see rnn, with g = 4.
///
///     [i; f; g; o] = W_ih x_t + b_ih + W_hh h_{t−1} + b_hh
///     c_t = σ(f) ⊙ c_{t−1} + σ(i) ⊙ tanh(g)        y_t = h_t = σ(o) ⊙ tanh(c_t)
///
/// Hochreiter, Schmidhuber 1997, Long Short-Term Memory; the forget gate: Gers, Schmidhuber,
/// Cummins 2000, Learning to Forget.
template <class S>
Value<S> lstm(const Value<S>& x, const std::string& name, Index units, bool bias = true,
              Index layer = 0) {
  return detail::recur<LstmCell>(x, name, units, bias, layer);
}
/// A gated recurrent unit, in the form of PyTorch, where the reset gate r multiplies W_hn h + b_hn.
/// Names and shapes: see rnn, with g = 3 and the gates in the order r, u, n.
///
///     r_t = σ(W_ir x_t + b_ir + W_hr h_{t−1} + b_hr)
///     u_t = σ(W_iu x_t + b_iu + W_hu h_{t−1} + b_hu)
///     n_t = tanh(W_in x_t + b_in + r_t ⊙ (W_hn h_{t−1} + b_hn))
///     y_t = h_t = (1 − u_t) ⊙ n_t + u_t ⊙ h_{t−1}
///
/// Cho et al. 2014, arXiv 1406.1078, eqs. 5 to 8, where r multiplies h and u is 1 − u.
template <class S>
Value<S> gru(const Value<S>& x, const std::string& name, Index units, bool bias = true,
             Index layer = 0) {
  return detail::recur<GruCell>(x, name, units, bias, layer);
}

}  // namespace fw::networks
