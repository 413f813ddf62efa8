#pragma once

#include <cmath>
#include <fastweights/core/errors.hpp>
#include <fastweights/core/finite.hpp>
#include <fastweights/layers/norms/layer_norm.hpp>
#include <fastweights/layers/projections/linear.hpp>
#include <fastweights/layers/recurrent/hebbian_forms.hpp>
#include <fastweights/layers/recurrent/recurrent_weights.hpp>
#include <fastweights/math/activations.hpp>
#include <fastweights/math/random.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace fw::inline FASTWEIGHTS_ABI {

/// The options of a FastWeightsRnn.
struct FastWeightsRnnOptions {
  Index inputs;
  Index hidden;              ///< R
  Index inner = 1;           ///< S; 0: a plain recurrent net without A and the norm
  double decay = 0.95;       ///< λ
  double rate = 0.5;         ///< η
  bool learn_decay = false;  ///< λ is a parameter with initial value `decay`
  bool learn_rate = false;   ///< η is a parameter with initial value `rate`
  bool bias = false;         ///< of C
  double identity = 0.05;    ///< W starts as identity · I
  FastWeightsForm form = FastWeightsForm::cheaper;  ///< how A is computed
};

/// A recurrent net that attends to its previous hidden states: the fast weights A are a decaying
/// sum of outer products of hidden states, and every new hidden state results from S inner steps
/// with A.
///
///     u = W h(t) + C x(t) + b         h_0 = f(u)
///     h_{s+1} = f(LN(u + A(t) h_s))   s = 0, …, S − 1       h(t+1) = h_S = y(t)
///     A(t) = λ A(t−1) + η h(t) h(t)ᵀ
///
/// A(t) includes h(t); LN has one gain and bias for all s. f is any elementwise activation
/// (math/activations.hpp). There are two forms, equal up to rounding. The matrix form updates A.
/// The attention form reads A(t) x = η Σ_τ λ^{t−τ} h(τ) (h(τ)·x), attention without softmax to the
/// hidden states of the call, plus λᵗ times the matrix of earlier calls. The attention form is
/// faster for sequences shorter than about R (1 + 1/S), in training R (1.4 + 1.1/S). This length
/// grows by a quarter if the matrices that a train pass stores exceed the cache. It shrinks by R
/// (in training 0.6 R) if the call continues from a used state.
///
/// Shapes: x D×T, y R×T, W R×R, C R×D, b R (size 0 without one), λ and η of size 1 if learned, else
/// of size 0; state h R×1 and A R×R. For B concatenated sequences x D×BT, y R×BT, h R×B and A R×BR;
/// one product per time step applies W to all sequences. Cost per token: 2 R (R + D) flops, plus
/// (3 + 2 S) R² in the matrix form; in the attention form 2 R² plus 4 S R times the number of
/// previous tokens, plus 2 S R² if the call continues from a used state. A train pass stores
/// (3 S + 5) R numbers per token; the matrix form stores 2 √T R² more in all. Learned rates have no
/// bounds: with λ > 1 A grows without limit. Throws std::invalid_argument when a size does not fit
/// or an option is not finite. Ba, Hinton, Mnih, Leibo, Ionescu 2016, arXiv 1610.06258, eqs. 1 and
/// 2, with layer norm; initial weights: appendix A.1.
template <class S, class Activation = Relu> struct FastWeightsRnn {
  using Scalar = S;
  using Matrix = Eigen::Matrix<S, Dynamic, Dynamic>;
  using Vector = Eigen::Matrix<S, Dynamic, 1>;
  static constexpr std::string_view name = "FastWeightsRnn";

  Linear<S> recurrent;  ///< W
  Linear<S> input;      ///< C and b
  LayerNorm<S> norm;
  Vector decay;        ///< λ if learned, else of size 0
  Vector rate;         ///< η if learned, else of size 0
  double fixed_decay;  ///< λ, if it is not learned
  double fixed_rate;   ///< η, if it is not learned
  /// S, the inner steps per token.
  Index inner;
  double identity;        ///< the factor of the identity in the initial W
  FastWeightsForm form;   ///< how A is computed
  Activation activation;  ///< f
  static constexpr auto names =
      fw::names("recurrent", "input", "norm", "decay", "rate", "fixed_decay", "fixed_rate", "inner",
                "identity", "form", "activation");

  struct State {
    Matrix h;  ///< one column per sequence
    Matrix A;  ///< R columns per sequence
    static constexpr auto names = fw::names("h", "A");
  };
  struct Trace {
    Matrix preactivation;    ///< u
    Matrix previous_hidden;  ///< h(t) of every token
    Matrix hidden;           ///< h(t+1) of every token
    Matrix inner_hidden;     ///< h_0 … h_{S−1} of every token
    Matrix sums;             ///< u + A h_s
    Matrix normed;           ///< LN(u + A h_s)
    Vector mean, inverse;
    Index sequences = 1;          ///< B of the last pass
    Index trained = 0;            ///< tokens of the last pass if it was a train pass, else 0
    bool attention_form = false;  ///< of the last pass
    std::vector<detail::HebbianMatrix<S>> matrix;  ///< one per sequence
    std::vector<detail::HebbianAttention<S>> attention;
    std::vector<detail::NoFastWeights> plain;  ///< for inner = 0
    Matrix dpreactivation, dhidden;            ///< backward's buffers
    Vector dh, dnormed, dsum;
  };

  /// Parameters are zero until initialised or loaded, except those of the norm, λ and η.
  explicit FastWeightsRnn(const FastWeightsRnnOptions& o, Activation f = {})
      : recurrent(checked(o).hidden, o.hidden, false),
        input(o.inputs, o.hidden, o.bias),
        norm(o.hidden),
        decay(Vector::Constant(o.learn_decay ? 1 : 0, S(o.decay))),
        rate(Vector::Constant(o.learn_rate ? 1 : 0, S(o.rate))),
        fixed_decay(o.decay),
        fixed_rate(o.rate),
        inner(o.inner),
        identity(o.identity),
        form(o.form),
        activation(f) {}

  Index inputs() const { return input.inputs(); }
  Index outputs() const { return recurrent.outputs(); }
  /// The state of `sequences` concatenated sequences.
  State initial_state(Index sequences = 1) const {
    detail::check_size<Dynamic>(name, "sequences", sequences);
    return {Matrix::Zero(outputs(), sequences), Matrix::Zero(outputs(), sequences * outputs())};
  }
  void check_state(const State& state) const {
    const auto check = [&](std::string_view what, Index given, const char* unit, Index expected) {
      if (given != expected) detail::throw_mismatch(name, what, given, unit, expected, "the layer");
    };
    check("h in the state", state.h.rows(), "rows", outputs());
    check("A in the state", state.A.rows(), "rows", outputs());
    check("A in the state", state.A.cols(), "columns", outputs() * state.h.cols());
  }

  /// As in the paper: W is a multiple of the identity, C and b are uniform in ±1/√R.
  template <class Generator> void initialise(Generator& random) {
    recurrent.weight.setIdentity();
    recurrent.weight *= S(identity);
    fill_uniform(random, 1 / std::sqrt(static_cast<double>(outputs())), input.weight, input.bias);
  }

  void forward(State& state, Input<S> x, Output<S> y, Trace& trace, Pass pass = Pass::infer) const {
    detail::check_forward(*this, x, y);
    detail::check_whole(name, pass);
    check_state(state);
    const Index sequences = detail::check_sequences(name, state.h.cols(), x.cols());
    trace.trained = 0;
    trace.sequences = sequences;
    resize_buffers(trace, x.cols());
    Nothing none;
    input.forward(none, x, trace.preactivation, none);
    trace.attention_form =
        form == FastWeightsForm::cheaper
            ? detail::attention_is_cheaper(x.cols() / sequences, inner, state.A, pass.trains())
            : form == FastWeightsForm::attention;
    with_form(trace, [&](auto& memories) { scan(memories, state, trace, pass.trains()); });
    y = trace.hidden;
    if (pass.trains()) trace.trained = x.cols();
  }

  void backward(Input<S> x, Trace& trace, Input<S> dy, Output<S> dx, FastWeightsRnn& grad) const {
    detail::check_backward(*this, x, trace.trained, dy, dx, grad);
    detail::check_extent(name, "the trace", trace.inner_hidden, outputs(), inner * x.cols());
    const Index steps = x.cols();
    trace.dpreactivation.resize(outputs(), steps);
    trace.dhidden.resize(outputs(), steps);
    trace.dhidden = dy;
    with_form(trace, [&](auto& memories) { scan_backward(memories, trace, grad); });
    detail::add_product(grad.recurrent.weight, trace.dpreactivation,
                        trace.previous_hidden.transpose(), detail::all_at_once);
    Nothing none;
    input.backward(x, none, trace.dpreactivation, dx, grad.input);
  }

 private:
  static const FastWeightsRnnOptions& checked(const FastWeightsRnnOptions& o) {
    detail::check_size<Dynamic>(name, "inputs", o.inputs);
    detail::check_size<Dynamic>(name, "hidden", o.hidden);
    if (o.inner < 0)
      detail::throw_invalid(
          {name, ": inner is ", std::to_string(o.inner), ", expected at least 0"});
    check_finite("decay", o.decay);
    check_finite("rate", o.rate);
    check_finite("identity", o.identity);
    return o;
  }
  static void check_finite(const std::string& what, double value) {
    if (!detail::is_finite(value))
      detail::throw_invalid(
          {name, ": ", what, " is ", std::to_string(value), ", expected a finite number"});
  }

  template <class F> void with_form(Trace& trace, const F& f) const {
    if (inner == 0) {
      f(trace.plain);
    } else if (trace.attention_form) {
      f(trace.attention);
    } else {
      f(trace.matrix);
    }
  }

  void resize_buffers(Trace& trace, Index steps) const {
    const Index r = outputs();
    for (auto* each : {&trace.preactivation, &trace.previous_hidden, &trace.hidden})
      each->resize(r, steps);
    for (auto* each : {&trace.inner_hidden, &trace.sums, &trace.normed})
      each->resize(r, steps * inner);
    trace.mean.resize(steps * inner);
    trace.inverse.resize(steps * inner);
    for (auto* each : {&trace.dh, &trace.dnormed, &trace.dsum}) each->resize(r);
  }

  // One of the sequences: its fast weights, the hidden states it writes, and the column of its
  // first token.
  template <class Memory> struct Sequence {
    Memory& memory;
    detail::HebbianWrites<S> in;
    Index first;
  };
  // Calls f(sequence, index).
  template <class Memory, class F>
  void for_each_sequence(std::vector<Memory>& memories, const Trace& trace, const F& f) const {
    const Index r = outputs(), steps = trace.hidden.cols() / trace.sequences;
    for (Index b = 0; b < trace.sequences; ++b)
      f(Sequence<Memory>{memories[static_cast<std::size_t>(b)],
                         {decay.size() > 0 ? decay[0] : S(fixed_decay),
                          rate.size() > 0 ? rate[0] : S(fixed_rate),
                          decay.size() + rate.size() > 0,
                          {trace.hidden.data() + b * steps * r, r, steps}},
                         b * steps},
        b);
  }
  detail::FastWeights<S> fast_weights(State& state, Index b) const {
    const Index r = outputs();
    return {state.A.data() + b * r * r, r, r};
  }

  // h_s of a token; h_S is its new hidden state.
  auto inner_hidden(Trace& trace, Index token, Index s) const {
    return s < inner ? trace.inner_hidden.col(token * inner + s) : trace.hidden.col(token);
  }

  template <class Memory>
  void scan(std::vector<Memory>& memories, State& state, Trace& trace, bool train) const {
    const Index n = trace.sequences;
    memories.resize(static_cast<std::size_t>(n));
    for_each_sequence(memories, trace, [&](const auto& each, Index b) {
      each.memory.start(fast_weights(state, b), each.in, train);
    });
    for (Index t = 0; t < trace.hidden.cols() / n; ++t) {
      detail::token_of_each(trace.previous_hidden, t, n) = state.h;
      detail::add_weighted(detail::token_of_each(trace.preactivation, t, n), recurrent.weight,
                           state.h);
      for_each_sequence(memories, trace, [&](const auto& each, Index b) {
        step(each, fast_weights(state, b), t, trace);
      });
      state.h = detail::token_of_each(trace.hidden, t, n);
    }
    for_each_sequence(memories, trace, [&](const auto& each, Index b) {
      auto A = fast_weights(state, b);
      each.memory.finish(A, each.in);
    });
  }
  // Token t of a sequence. Its preactivation is already in the trace.
  template <class Each>
  void step(const Each& each, detail::FastWeights<S> A, Index t, Trace& trace) const {
    const Index token = each.first + t;
    activate(trace.preactivation.col(token), inner_hidden(trace, token, 0));
    for (Index s = 0; s < inner; ++s) inner_step(each, A, t, s, trace);
    each.memory.write(A, each.in, t);
  }
  template <class Each>
  void inner_step(const Each& each, const detail::FastWeights<S>& A, Index t, Index s,
                  Trace& trace) const {
    const Index token = each.first + t, i = token * inner + s;
    auto sum = trace.sums.col(i), normed = trace.normed.col(i);
    sum = trace.preactivation.col(token);
    each.memory.read(A, each.in, t, trace.inner_hidden.col(i), sum);
    norm.normalise(sum, normed, trace.mean[i], trace.inverse[i]);
    activate(normed, inner_hidden(trace, token, s + 1));
  }

  template <class Memory>
  void scan_backward(std::vector<Memory>& memories, Trace& trace, FastWeightsRnn& grad) const {
    const Index n = trace.sequences;
    for_each_sequence(memories, trace,
                      [](const auto& each, Index) { each.memory.start_backward(each.in); });
    for (Index t = trace.hidden.cols() / n - 1; t >= 0; --t) {
      for_each_sequence(memories, trace,
                        [&](const auto& each, Index) { step_vjp(each, t, trace, grad); });
      if (t > 0)
        detail::add_weighted(detail::token_of_each(trace.dhidden, t - 1, n),
                             recurrent.weight.transpose(),
                             detail::token_of_each(trace.dpreactivation, t, n));
    }
  }
  // Computes the gradients of the preactivation and of the previous hidden states from that of h.
  template <class Each>
  void step_vjp(const Each& each, Index t, Trace& trace, FastWeightsRnn& grad) const {
    const Index token = each.first + t, r = outputs();
    detail::HebbianGradients<S> out{
        S(0), S(0), {trace.dhidden.data() + each.first * r, r, each.in.hidden.cols()}};
    each.memory.write_vjp(each.in, t, out);
    trace.dh = trace.dhidden.col(token);
    auto du = trace.dpreactivation.col(token);
    du.setZero();
    for (Index s = inner - 1; s >= 0; --s) inner_step_vjp(each, t, s, trace, out, grad);
    du.array() += trace.dh.array() * derivative(trace.preactivation.col(token));
    if (decay.size() > 0) grad.decay[0] += out.decay;
    if (rate.size() > 0) grad.rate[0] += out.rate;
  }
  // Turns dh, the gradient of h_{s+1}, into that of h_s.
  template <class Each>
  void inner_step_vjp(const Each& each, Index t, Index s, Trace& trace,
                      detail::HebbianGradients<S>& out, FastWeightsRnn& grad) const {
    const Index token = each.first + t, i = token * inner + s;
    trace.dnormed.array() = trace.dh.array() * derivative(trace.normed.col(i));
    norm.normalise_vjp(trace.sums.col(i), trace.mean[i], trace.inverse[i], trace.dnormed,
                       trace.dsum, grad.norm);
    trace.dpreactivation.col(token) += trace.dsum;
    each.memory.read_vjp(each.in, t, trace.inner_hidden.col(i), trace.dsum, out, trace.dh);
  }

  template <class X, class Y> void activate(const X& x, Y y) const {
    y.array() = detail::activated(activation, x.array());
  }
  template <class X> auto derivative(const X& x) const {
    return detail::activated_derivative(activation, x.array());
  }
};

}  // namespace fw
