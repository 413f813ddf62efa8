#pragma once

#include <fastweights/core/stability.hpp>
#include <fastweights/networks/operations/hebbian_forms.hpp>
#include <fastweights/networks/operations/recurrent.hpp>

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// The options of fast_weights_rnn.
struct FastWeightsRnnOptions {
  Index hidden;                                     ///< R
  Index inner = 1;                                  ///< S, at least 1
  double decay = 0.95;                              ///< λ
  double rate = 0.5;                                ///< η
  bool learn_decay = false;                         ///< λ is a weight with initial value `decay`
  bool learn_rate = false;                          ///< η is a weight with initial value `rate`
  bool bias = false;                                ///< of C
  FastWeightsForm form = FastWeightsForm::cheaper;  ///< how A is computed
};

/// The state of a net with fast weights.
template <class S> struct FastWeightsState {
  Matrix<S> h;  ///< one column for every sequence
  Matrix<S> A;  ///< R columns for every sequence
  static constexpr auto names = fw::names("h", "A");
};

/// The recurrent net of fast_weights_rnn() behind C x + b. The weights are W, the gain and the bias
/// of the norm, and λ and η if they are learned.
template <class S, class F> struct RecurFastWeights final : Operation<S> {
  using Vector = Eigen::Matrix<S, Dynamic, 1>;
  using ConstColumn = Eigen::Map<const Eigen::Array<S, Dynamic, 1>>;
  using HebbianMatrix = fw::detail::HebbianMatrix<S>;
  using HebbianAttention = fw::detail::HebbianAttention<S>;
  FastWeightsRnnOptions options;

  struct OwnTrace final : OperationTrace {
    Matrix<S> initial;        ///< h before the first token
    Matrix<S> products;       ///< W h of every sequence
    Matrix<S> preactivation;  ///< u of every token
    Matrix<S> inner_hidden;   ///< h_0 … h_{S−1} of every token
    Matrix<S> sums, normed;   ///< u + A h_s, LN(u + A h_s)
    Vector mean, inverse;
    bool attention_form = false;  ///< of the last pass
    std::vector<HebbianMatrix> matrix;
    std::vector<HebbianAttention> attention;
    Matrix<S> dpreactivation, dhidden, dprevious;
    Vector dh, dnormed, dsum;
  };

  explicit RecurFastWeights(const FastWeightsRnnOptions& o) : options(o) {}

  std::unique_ptr<StatePart> initial_state(Index sequences) const override {
    const Index r = options.hidden;
    return std::make_unique<StateOfPart<FastWeightsState<S>>>(
        FastWeightsState<S>{Matrix<S>::Zero(r, sequences), Matrix<S>::Zero(r, r * sequences)});
  }
  std::unique_ptr<StatePart> state_gradient(Index sequences) const override {
    return initial_state(sequences);
  }
  void check_state(const Forward<S>& run) const override {
    const auto& state = run.template own_state<FastWeightsState<S>>();
    const Index r = options.hidden;
    fw::detail::check_extent(run.node.path, "h in the state", state.h, r, run.sequences());
    fw::detail::check_extent(run.node.path, "A in the state", state.A, r, r * run.sequences());
  }
  std::unique_ptr<OperationTrace> make_trace() const override {
    return std::make_unique<OwnTrace>();
  }

  void forward(const Forward<S>& run) const override {
    const auto& state = run.template own_state<FastWeightsState<S>>();
    auto& trace = run.template own_trace<OwnTrace>();
    resize(trace, run.in().cols());
    trace.initial = state.h;
    trace.attention_form = options.form == FastWeightsForm::cheaper
                               ? fw::detail::attention_is_cheaper(run.streams.most_steps(),
                                                                  options.inner, state.A, run.train)
                               : options.form == FastWeightsForm::attention;
    with_form(run, trace, [&](auto& memories) { scan(run, trace, memories); });
  }
  void backward(const Backward<S>& run) const override {
    auto& trace = run.template own_trace<OwnTrace>();
    trace.dhidden = run.dout();
    trace.dpreactivation.resize(options.hidden, trace.dhidden.cols());
    with_form(run, trace, [&](auto& memories) { scan_backward(run, trace, memories); });
    run.din() += trace.dpreactivation;
    detail::add_recurrent_gradient(run, trace.dpreactivation, trace.initial, run.dweight());
  }

 private:
  static constexpr double epsilon = 1e-5;  // of the norm

  void resize(OwnTrace& trace, Index tokens) const {
    const Index r = options.hidden, inner = options.inner * tokens;
    trace.preactivation.resize(r, tokens);
    for (auto* each : {&trace.inner_hidden, &trace.sums, &trace.normed}) each->resize(r, inner);
    for (auto* each : {&trace.mean, &trace.inverse}) each->resize(inner);
    for (auto* each : {&trace.dh, &trace.dnormed, &trace.dsum}) each->resize(r);
  }
  template <class Call>
  static void with_form(const Forward<S>& run, OwnTrace& trace, const Call& call) {
    const auto count = static_cast<std::size_t>(run.sequences());
    if (trace.attention_form)
      trace.attention.resize(count), call(trace.attention);
    else
      trace.matrix.resize(count), call(trace.matrix);
  }

  // The rates, and the hidden states that sequence b writes.
  fw::detail::HebbianWrites<S> writes(const Forward<S>& run, Index b) const {
    const auto y = run.out();
    const bool learns = options.learn_decay || options.learn_rate;
    return {options.learn_decay ? run.weight(3)(0, 0) : S(options.decay),
            options.learn_rate ? run.weight(options.learn_decay ? 4 : 3)(0, 0) : S(options.rate),
            learns,
            {y.data() + run.streams.first(b) * y.colStride(), y.rows(), run.streams.steps(b)}};
  }
  fw::detail::FastWeights<S> matrix_of(FastWeightsState<S>& state, Index b) const {
    const Index r = options.hidden;
    return {state.A.data() + b * r * r, r, r};
  }

  template <class Memories>
  void scan(const Forward<S>& run, OwnTrace& trace, Memories& memories) const {
    auto& state = run.template own_state<FastWeightsState<S>>();
    for (Index b = 0; b < run.sequences(); ++b)
      memories[std::size_t(b)].start(matrix_of(state, b), writes(run, b), run.train);
    for (Index t = 0; t < run.streams.most_steps(); ++t) {
      trace.products.setZero(options.hidden, run.sequences());
      detail::add_weighted(trace.products, run.weight(), state.h);
      detail::for_each_token_at(run, t, [&](Index b, Index token) {
        trace.preactivation.col(token) = run.in().col(token) + trace.products.col(b);
        step(run, trace, memories[std::size_t(b)], b, t);
        state.h.col(b) = run.out().col(token);
      });
    }
    for (Index b = 0; b < run.sequences(); ++b) {
      auto A = matrix_of(state, b);
      memories[std::size_t(b)].finish(A, writes(run, b));
    }
  }
  // Token t of sequence b, whose preactivation is in the trace.
  template <class Memory>
  void step(const Forward<S>& run, OwnTrace& trace, Memory& memory, Index b, Index t) const {
    const auto in = writes(run, b);
    auto A = matrix_of(run.template own_state<FastWeightsState<S>>(), b);
    const Index token = run.streams.first(b) + t, first = token * options.inner;
    const Index end = first + options.inner;
    trace.inner_hidden.col(first).array() =
        fw::detail::activated(F{}, trace.preactivation.col(token).array());
    for (Index i = first; i < end; ++i) {
      auto sum = trace.sums.col(i);
      sum = trace.preactivation.col(token);
      memory.read(A, in, t, trace.inner_hidden.col(i), sum);
      normalise(run, trace, i);
      const auto h = fw::detail::activated(F{}, trace.normed.col(i).array());
      if (i + 1 < end)
        trace.inner_hidden.col(i + 1).array() = h;
      else
        run.out().col(token).array() = h;
    }
    memory.write(A, in, t);
  }

  // The rates' gradients, which are added up, and the place for those of b's hidden states.
  fw::detail::HebbianGradients<S> gradients(const Backward<S>& run, OwnTrace& trace,
                                            Index b) const {
    return {S(0),
            S(0),
            {trace.dhidden.data() + run.streams.first(b) * options.hidden, options.hidden,
             run.streams.steps(b)}};
  }
  void add_rates(const Backward<S>& run, const fw::detail::HebbianGradients<S>& own) const {
    if (options.learn_decay) run.dweight(3)(0, 0) += own.decay;
    if (options.learn_rate) run.dweight(options.learn_decay ? 4 : 3)(0, 0) += own.rate;
  }

  template <class Memories>
  void scan_backward(const Backward<S>& run, OwnTrace& trace, Memories& memories) const {
    auto* const asked = run.template own_state_gradient<FastWeightsState<S>>();
    start_backward(run, trace, memories, asked);
    trace.products.setZero(options.hidden, run.sequences());  // gradients of W h here
    for (Index t = run.streams.most_steps() - 1; t >= 0; --t) {
      detail::for_each_token_at(run, t, [&](Index b, Index token) {
        step_vjp(run, trace, memories[std::size_t(b)], b, t);
        trace.products.col(b) = trace.dpreactivation.col(token);
      });
      if (t == 0 && asked == nullptr) break;
      trace.dprevious.setZero(options.hidden, run.sequences());
      detail::add_weighted(trace.dprevious, run.weight().transpose(), trace.products);
      detail::for_each_token_at(run, t, [&](Index b, Index token) {
        if (t > 0)
          trace.dhidden.col(token - 1) += trace.dprevious.col(b);
        else
          asked->h.col(b) = trace.dprevious.col(b);
      });
    }
    if (asked == nullptr) return;
    for_each_sequence(run, [&](Index b) {
      auto dA = matrix_of(*asked, b);
      memories[std::size_t(b)].finish_backward(dA);
    });
  }
  // From the gradient of the state behind the tokens, or null.
  template <class Memories>
  void start_backward(const Backward<S>& run, OwnTrace& trace, Memories& memories,
                      FastWeightsState<S>* after) const {
    for_each_sequence(run, [&](Index b) {
      auto& memory = memories[std::size_t(b)];
      if (after == nullptr) return memory.start_backward(writes(run, b));
      auto out = gradients(run, trace, b);
      out.hidden.rightCols(1) += after->h.col(b);
      memory.start_backward(writes(run, b), matrix_of(*after, b), out);
      add_rates(run, out);
    });
  }
  // Calls f(b) for every sequence that has tokens.
  template <class Call> static void for_each_sequence(const Forward<S>& run, const Call& f) {
    for (Index b = 0; b < run.sequences(); ++b)
      if (run.streams.steps(b) > 0) f(b);
  }

  // Computes the gradients of the preactivation and of earlier hidden states from that of h.
  template <class Memory>
  void step_vjp(const Backward<S>& run, OwnTrace& trace, Memory& memory, Index b, Index t) const {
    const auto in = writes(run, b);
    const Index token = run.streams.first(b) + t, first = token * options.inner;
    auto out = gradients(run, trace, b);
    memory.write_vjp(in, t, out);
    trace.dh = trace.dhidden.col(token);
    auto du = trace.dpreactivation.col(token);
    du.setZero();
    for (Index i = first + options.inner - 1; i >= first; --i) {
      trace.dnormed.array() = trace.dh.array() * fw::detail::activated_derivative(
                                                     F{}, trace.normed.col(i).array(),
                                                     inner_hidden(run, trace, token, i + 1));
      normalise_vjp(run, trace, i);
      du += trace.dsum;
      memory.read_vjp(in, t, trace.inner_hidden.col(i), trace.dsum, out, trace.dh);
    }
    du.array() += trace.dh.array() *
                  fw::detail::activated_derivative(F{}, trace.preactivation.col(token).array(),
                                                   inner_hidden(run, trace, token, first));
    add_rates(run, out);
  }

  // h_s of a token, with i = S·token + s; h_S is its output.
  ConstColumn inner_hidden(const Backward<S>& run, const OwnTrace& trace, Index token,
                           Index i) const {
    const auto y = run.out();
    const bool is_output = i == (token + 1) * options.inner;
    const S* from = is_output ? y.data() + token * y.colStride() : trace.inner_hidden.col(i).data();
    return {from, options.hidden};
  }

  // LN of column i of the sums.
  void normalise(const Forward<S>& run, OwnTrace& trace, Index i) const {
    using std::sqrt;
    const auto x = trace.sums.col(i).array();
    const S n = S(double(x.size()));
    trace.mean[i] = x.sum() / n;
    trace.inverse[i] = S(1) / sqrt((x - trace.mean[i]).square().sum() / n + S(epsilon));
    trace.normed.col(i).array() =
        (x - trace.mean[i]) * trace.inverse[i] * run.weight(1).col(0).array() +
        run.weight(2).col(0).array();
  }
  void normalise_vjp(const Backward<S>& run, OwnTrace& trace, Index i) const {
    const auto normalised = (trace.sums.col(i).array() - trace.mean[i]) * trace.inverse[i];
    run.dweight(1).col(0).array() += trace.dnormed.array() * normalised;
    run.dweight(2) += trace.dnormed;
    trace.dnormed.array() *= run.weight(1).col(0).array();
    const S n = S(double(options.hidden)), mean = trace.dnormed.sum() / n;
    const S along = (trace.dnormed.array() * normalised).sum() / n;
    trace.dsum.array() = (trace.dnormed.array() - mean - normalised * along) * trace.inverse[i];
  }
};

/// A recurrent net that attends to its previous hidden states: the fast weights A are a decaying
/// sum of outer products of hidden states, and every new hidden state results from S inner steps
/// with A.
///
///     u = W h(t) + C x(t) + b         h_0 = f(u)
///     h_{s+1} = f(LN(u + A(t) h_s))   s = 0, …, S − 1       h(t+1) = h_S = y(t)
///     A(t) = λ A(t−1) + η h(t) h(t)ᵀ
///
/// LN has one gain and bias for all s; f is Relu or Tanh. The weights are `name`.recurrent.weight
/// (W, in the paper 0.05·I at the start: start_at_identity), input.weight and input.bias (C, b),
/// norm.weight, norm.bias, and decay and rate, if these are learned. Shapes: x D×T, y R×T, W R×R,
/// C R×D; state h R×1 and A R×R. Cost per token: 2 R (R + D) flops, plus (3 + 2 S) R² in the matrix
/// form or 4 S R times the number of previous tokens in the attention form, which are equal up to
/// rounding. The attention form is faster for sequences shorter than about R (1 + 1/S), in training
/// R (1.4 + 1.1/S); from a used state by R, in training 0.6 R, shorter. A train pass stores
/// (3 S + 3) R numbers of its own per token; the matrix form stores 2 √T R² more in all. Learned
/// rates have no bounds: with λ > 1 A grows without limit. Throws std::invalid_argument for sizes
/// below 1 or rates that are not finite. Ba, Hinton, Mnih, Leibo, Ionescu 2016, arXiv 1610.06258,
/// eqs. 1 and 2, with layer norm.
template <class F = Relu, class S>
Value<S> fast_weights_rnn(const Value<S>& x, const std::string& name,
                          const FastWeightsRnnOptions& o) {
  Builder<S>& builder = *x.builder;
  const std::string path = builder.path(name);
  fw::detail::check_size<Dynamic>(path, "hidden", o.hidden);
  fw::detail::check_size<Dynamic>(path, "inner", o.inner);
  fw::detail::check_finite(path, "decay", o.decay);
  fw::detail::check_finite(path, "rate", o.rate);
  const Initialiser draw = uniform_initialiser(1 / std::sqrt(double(o.hidden)));
  const auto weight = [&](const std::string& of, const std::vector<Index>& axes,
                          const Initialiser& by) {
    return builder.weight(name + "." + of, axes, by);
  };
  std::vector<std::size_t> input{weight("input.weight", {o.hidden, x.rows()}, draw)};
  if (o.bias) input.push_back(weight("input.bias", {o.hidden}, draw));
  std::vector<std::size_t> weights{weight("recurrent.weight", {o.hidden, o.hidden}, draw),
                                   weight("norm.weight", {o.hidden}, constant_initialiser(1)),
                                   weight("norm.bias", {o.hidden}, constant_initialiser(0))};
  if (o.learn_decay) weights.push_back(weight("decay", {1}, constant_initialiser(o.decay)));
  if (o.learn_rate) weights.push_back(weight("rate", {1}, constant_initialiser(o.rate)));
  const Value<S> u = builder.add(Linear<S>{}, o.hidden, {x}, std::move(input));
  return builder.add(RecurFastWeights<S, F>(o), o.hidden, {u}, std::move(weights), name);
}

}  // namespace fw::networks
