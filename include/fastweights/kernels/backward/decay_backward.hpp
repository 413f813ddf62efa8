#pragma once

#include <algorithm>
#include <cmath>
#include <fastweights/core/check.hpp>
#include <fastweights/kernels/backward/rule_gradients.hpp>
#include <fastweights/math/decay.hpp>
#include <vector>

/// \file
/// Gradients of rules with input decays, W̄_t = W_{t−1} diag(α_t). The gradient of α_t is the column
/// sum of W_{t−1} ∘ Ḡ_t, but no pass has both the state and its gradient. The passes do have the
/// terms of a recurrence for r_t = α_t dα_t = Σ_rows W̄_t ∘ Ḡ_t, a sum over what happens between the
/// decay of token t and the next:
///
///     r_t = r_{t+1} + Σ_reads q ∘ dq − Σ_writes b ∘ db + Σ_look-ups a ∘ da
///
/// The sequence is split into segments. At the end of a segment r is computed from the state and
/// its gradient. Then the recurrence gives r at earlier tokens, and dα = r / α. One decay per token
/// uses the sum over columns. A segment has at most 512 tokens, to limit rounding errors. It also
/// ends before every token with a decay below 1/64 or above 64 in any column, so that a chunk's
/// products of decays are neither 0 nor infinite. The gradient of such a decay is computed from the
/// matrices. The forward pass stores the states for this. If every token has such a decay, each
/// segment is one token: then every token copies the matrices in and out, and up to 512 states are
/// stored.

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// Results of the forward pass, and buffers of the backward pass.
template <class S, class State> struct DecayTrace : ErrorTrace<S> {
  Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic> decay_terms;
  std::vector<State> states;          // before tokens 0, C, 2C, … and after the last token
  std::vector<State> segment_states;  // the first states of the segments within C tokens
};

inline constexpr Index decay_interval = 512;  // C

template <class M, class Trace>
void scan_with_states(const M& m, StateOf<M>& s, const WriteSequence<M>& inputs,
                      const ReadSequence<M>& queries, OutSequence<M>& out, Trace& trace) {
  const auto signature = m.signature();
  const Index total = queries.query.cols();
  constexpr Index per_token = corrections_per_token<M>();
  if constexpr (M::has_delta_term) trace.errors.resize(s.W.rows(), per_token * total);
  trace.states.resize(static_cast<std::size_t>((total + decay_interval - 1) / decay_interval + 1),
                      s);
  auto stored = trace.states.begin();
  for (Index t = 0; t < total; t += decay_interval) {
    *stored++ = s;
    const Index count = std::min(decay_interval, total - t);
    auto outputs = steps(out, signature.out(), t, count);
    scan_by_kernel(m, s, steps(inputs, signature.write(), t, count),
                   steps(queries, signature.read(), t, count), outputs,
                   M::has_delta_term ? columns_of(trace.errors).from(per_token * t)
                                     : Columns<typename M::Scalar>{});
  }
  *stored = s;
}

/// The backward pass of a rule M: accumulates the gradients of the tokens. ds is the gradient of
/// the final state on entry and of the initial state on return.
template <class M> class DecayBackward {
 public:
  using S = typename M::Scalar;
  using State = StateOf<M>;
  using Trace = DecayTrace<S, State>;

  DecayBackward(const M& m, Trace& trace, const WriteSequence<M>& inputs,
                const ReadSequence<M>& queries, const OutGradSequence<M>& dy, State& ds,
                const WriteGradSequence<M>& dinputs, const ReadGradSequence<M>& dqueries)
      : m_(m),
        trace_(trace),
        inputs_(inputs),
        dinputs_(dinputs),
        ds_(ds),
        rule_(m, trace.states.front(), inputs, queries, dy, ds, dinputs, dqueries),
        total_(queries.query.cols()) {
    trace.decay_terms.resize(M::decay_kind == DecayKind::scalar ? 1 : ds.W.cols(),
                             std::min(decay_interval, total_));
    rule_.terms = columns_of(trace.decay_terms);
    rule_.set_trace(trace);
  }

  void run() {
    for (std::size_t i = trace_.states.size() - 1; i-- > 0;) {
      const Index first = static_cast<Index>(i) * decay_interval;
      Index end = std::min(total_, first + decay_interval);
      std::size_t segment = begin_segments(trace_.states[i], first, end);
      const State* after = &trace_.states[i + 1];
      while (segment-- > 0) {
        const State& before = trace_.segment_states[segment];
        const Index begin = begins_[segment];
        run_segment(before, *after, begin, end - begin);
        after = &before;
        end = begin;
      }
    }
  }

 private:
  using Vector = Eigen::Matrix<S, Eigen::Dynamic, 1>;

  WriteToken<M> token(Index t) const {
    return token_at<WriteToken<M>>(inputs_, m_.signature().write(), t);
  }
  static bool is_far(const S& decay) {
    return !(std::abs(decay) >= S(1) / S(64) && std::abs(decay) <= S(64));
  }
  template <class D> static bool is_far(const Eigen::MatrixBase<D>& decay) {
    const auto size = decay.cwiseAbs();
    return is_far(size.template minCoeff<Eigen::PropagateNaN>()) || is_far(size.maxCoeff());
  }

  // Finds the segments from `first` to `end`: stores their first states and tokens, and returns
  // their number.
  std::size_t begin_segments(const State& state, Index first, Index end) {
    std::size_t count = 0;
    Index written = first;
    for (Index t = first; t < end; ++t) {
      if (t > first && !is_far(token(t).decay)) continue;
      begin_segment(count, count == 0 ? state : trace_.segment_states[count - 1], t);
      for (; written < t; ++written) m_.write(trace_.segment_states[count], token(written));
      ++count;
    }
    return count;
  }
  void begin_segment(std::size_t i, const State& state, Index t) {
    if (i == trace_.segment_states.size()) {
      trace_.segment_states.push_back(state);
    } else {
      trace_.segment_states[i] = state;
    }
    begins_[i] = t;
  }

  void run_segment(const State& before, const State& after, Index begin, Index count) {
    auto& G = ds_.W;
    if constexpr (M::decay_kind == DecayKind::scalar)
      r_.setConstant(1, after.W.cwiseProduct(G).sum());
    else
      r_ = after.W.cwiseProduct(G).colwise().sum().transpose();
    decayed_ = before;
    apply_decay(decayed_.W, token(begin).decay);
    rule_.terms_first = begin;
    backward_segment<M::decay_kind>(rule_, decayed_.W, G, begin, count);
    const auto gradient = [&](Index t) {
      return token_at<WriteGradToken<M>>(dinputs_, m_.signature().write(), t);
    };
    for (Index t = count - 1; t > 0; --t) {
      r_ += trace_.decay_terms.col(t);
      auto d = gradient(begin + t);
      add_quotient(r_, token(begin + t).decay, d.decay);
    }
    auto d = gradient(begin);
    apply_decay_vjp(before.W, token(begin).decay, G, d.decay);
    rule_.add_before_decay(begin, before.W, G);
  }

  static void add_quotient(const Vector& r, const S& decay, S& gradient) {
    gradient += r[0] / decay;
  }
  template <class D, class G>
  static void add_quotient(const Vector& r, const Eigen::MatrixBase<D>& decay, G& gradient) {
    gradient += r.cwiseQuotient(decay);
  }

  const M& m_;
  Trace& trace_;
  const WriteSequence<M>& inputs_;
  const WriteGradSequence<M>& dinputs_;
  State& ds_;
  RuleGradients<M> rule_;
  Index total_;
  Vector r_;
  State decayed_;
  Index begins_[decay_interval];
};

}  // namespace fw::detail
