#pragma once

#include <fastweights/kernels/backward/decay_gradients.hpp>

/// \file
/// The kernels give a rule its backward pass over a sequence, if the rule says
///
///     static constexpr bool kernel_backward = true;
///
/// Its equation must be that of backward.hpp, with reads y = W q:
/// - It looks up and writes under `key`, and W is a plain sum.
/// - With a delta term, β is the token's `beta`, one number.
/// - α is the token's `decay`. Without such a member it is a constant of the rule, and so is β
///   without a delta term. `coefficients` gives both, for any token.

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// Whether every token of M has its own decay.
template <class M> inline constexpr bool has_token_decay = requires(const WriteToken<M>& t) {
  t.decay;
};

/// Whether M has a delta term with one β per token, or neither of them.
template <class M> constexpr bool fits_beta() {
  if constexpr (requires(const WriteToken<M>& t) { t.beta; })
    return M::has_delta_term && !is_per_row<decltype(WriteToken<M>::beta)>;
  else
    return !M::has_delta_term;
}

/// The errors of the forward pass, and the gradients of the updates, d_v×T.
template <class S> struct ErrorTrace {
  Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic> errors, update_gradients;
};

/// The backward pass of a rule by the kernels.
template <class M> struct KernelBackward {
  using S = typename M::Scalar;
  using State = StateOf<M>;
  using Trace = std::conditional_t<has_token_decay<M>, DecayTrace<S, State>, ErrorTrace<S>>;
  static constexpr bool keeps_trace = has_token_decay<M> || M::has_delta_term;
  static_assert(corrections_per_token<M>() == 1 && !has_corrections<M> && !reads_first<M>(),
                "fastweights: kernel_backward is for rules with `coefficients`, which read last");
  static_assert(
      fits_beta<M>(),
      "fastweights: kernel_backward needs a delta term and one beta per token, or neither");
  static_assert(
      M::decay_kind != DecayKind::compensated &&
          has_token_decay<M> <= (M::decay_kind != DecayKind::none),
      "fastweights: kernel_backward is not for compensated sums; a rule whose tokens have "
      "a decay has its decay_kind");

  const M& m;

  void scan(State& s, const WriteSequence<M>& inputs, const ReadSequence<M>& queries,
            OutSequence<M> out, Trace& trace) const requires keeps_trace {
    if constexpr (has_token_decay<M>) {
      scan_with_states(m, s, inputs, queries, out, trace);
    } else {
      trace.errors.resize(inputs.value.rows(), inputs.value.cols());
      scan_by_kernel(m, s, inputs, queries, out, columns_of(trace.errors));
    }
  }
  void backward([[maybe_unused]] const State& initial, Trace& trace, const WriteSequence<M>& inputs,
                const ReadSequence<M>& queries, const OutGradSequence<M>& dy, State& ds,
                WriteGradSequence<M> dinputs,
                ReadGradSequence<M> dqueries) const requires keeps_trace {
    if constexpr (has_token_decay<M>) {
      decay_backward(m, trace, inputs, queries, dy, ds, dinputs, dqueries);
    } else {
      trace.update_gradients.resize(inputs.value.rows(), inputs.value.cols());
      auto tokens = backward_tokens(m, inputs, queries, dy, dinputs, dqueries);
      tokens.e = columns_of(trace.errors);
      tokens.du = columns_of(trace.update_gradients);
      run(initial, tokens, inputs, queries, ds);
    }
  }
  void backward(const State& initial, const WriteSequence<M>& inputs,
                const ReadSequence<M>& queries, const OutGradSequence<M>& dy, State& ds,
                WriteGradSequence<M> dinputs, ReadGradSequence<M> dqueries) const
      requires(!keeps_trace) {
    run(initial, backward_tokens(m, inputs, queries, dy, dinputs, dqueries), inputs, queries, ds);
  }

 private:
  // Without decays, or with a constant one.
  void run(const State& initial, BackwardTokens<S> tokens, const WriteSequence<M>& inputs,
           [[maybe_unused]] const ReadSequence<M>& queries, State& ds) const {
    const Index steps = inputs.key.cols();
    if constexpr (M::decay_kind == DecayKind::none) {
      backward_pairs<M::has_delta_term, M::decay_kind>(initial.W, ds.W, tokens, steps);
    } else {
      if (steps == 0) return;
      State decayed = initial;
      const auto c =
          m.coefficients(decayed, token_at<WriteToken<M>>(inputs, m.signature().write(), 0),
                         token_at<ReadToken<M>>(queries, m.signature().read(), 0));
      const S rate = c.beta * c.value_scale;
      if constexpr (!M::has_delta_term) tokens.beta = {&rate, 0};
      tokens.decays = {&c.decay, 0};
      decayed.W = c.decay * initial.W;
      backward_pairs<M::has_delta_term, M::decay_kind>(decayed.W, ds.W, tokens, steps);
      ds.W *= c.decay;
    }
  }
};

template <KernelRule M>
requires(M::kernel_backward && !requires { &M::backward; }) struct BackwardForms<M> {
  using type = KernelBackward<M>;
};

}  // namespace fw::detail
