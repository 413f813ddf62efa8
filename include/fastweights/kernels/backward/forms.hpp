#pragma once

#include <fastweights/kernels/backward/decay_backward.hpp>

/// \file
/// The kernels give a rule its backward pass over a sequence, if the rule says
///
///     static constexpr bool kernel_backward = true;
///
/// Its state is W, a plain sum, and slow weights if need be. α is the token's `decay`; without such
/// a member it is a constant of the rule. A rule with `coefficients` may have a gradient in β, the
/// token's `beta`, and no others; one with `correction` has `correction_vjp`
/// (correction_gradient.hpp).

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// True if every token of M has its own decay.
template <class M> inline constexpr bool has_token_decay = requires(const WriteToken<M>& t) {
  t.decay;
};

/// The backward pass of a rule by the kernels.
template <class M> struct KernelBackward {
  using S = typename M::Scalar;
  using State = StateOf<M>;
  static constexpr bool keeps_trace = has_token_decay<M> || M::has_delta_term;
  using OwnTrace = std::conditional_t<has_token_decay<M>, DecayTrace<S, State>, ErrorTrace<S>>;
  struct NoTrace {};
  using Trace = std::conditional_t<keeps_trace, OwnTrace, NoTrace>;
  static_assert(has_correction_vjp<M> == has_corrections<M>,
                "fastweights: kernel_backward of a rule with `correction` needs `correction_vjp`");
  static_assert(!reads_first<M>() || (!M::has_delta_term && corrections_per_token<M>() == 1),
                "fastweights: kernel_backward of a rule that reads first is for one correction per "
                "token, without a look-up");
  static_assert(M::decay_kind != DecayKind::per_channel || has_token_decay<M>,
                "fastweights: kernel_backward with one decay per key row needs the token's decay");
  static_assert(corrections_per_token<M>() <= chunk_size,
                "fastweights: kernel_backward is for at most 8 corrections per token");
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
      trace.errors.resize(s.W.rows(), corrections_per_token<M>() * queries.query.cols());
      scan_by_kernel(m, s, inputs, queries, out, columns_of(trace.errors));
    }
  }
  void backward([[maybe_unused]] const State& initial, [[maybe_unused]] Trace& trace,
                const WriteSequence<M>& inputs, const ReadSequence<M>& queries,
                const OutGradSequence<M>& dy, State& ds, WriteGradSequence<M> dinputs,
                ReadGradSequence<M> dqueries) const {
    if constexpr (has_token_decay<M>) {
      DecayBackward<M>(m, trace, inputs, queries, dy, ds, dinputs, dqueries).run();
    } else {
      RuleGradients<M> rule(m, initial, inputs, queries, dy, ds, dinputs, dqueries);
      if constexpr (keeps_trace) rule.set_trace(trace);
      run(initial, rule, queries.query.cols(), ds);
    }
  }

 private:
  // Without decays, or with a constant one.
  void run(const State& initial, RuleGradients<M>& rule, Index tokens, State& ds) const {
    if (tokens == 0) return;
    if constexpr (M::decay_kind == DecayKind::none) {
      backward_segment<M::decay_kind>(rule, initial.W, ds.W, 0, tokens);
    } else {
      const S decay = rule.get(0, 0).coefficients.decay;
      State decayed = initial;
      decayed.W *= decay;
      backward_segment<M::decay_kind>(rule, decayed.W, ds.W, 0, tokens);
      ds.W *= decay;
      static_assert(!layout_of<M>().reads_first && !layout_of<M>().lookup_before_decay,
                    "fastweights: a constant decay comes before look-ups and reads");
    }
  }
};

template <KernelRule M>
requires(M::kernel_backward && !requires { &M::backward; }) struct BackwardImplementation<M> {
  using type = KernelBackward<M>;
};

}  // namespace fw::detail
