#pragma once

#include <algorithm>
#include <cmath>
#include <fastweights/core/check.hpp>
#include <fastweights/core/decay.hpp>
#include <fastweights/kernels/backward/rule.hpp>
#include <vector>

/// \file
/// Gradients of rules whose tokens bring decays, W̄_t = W_{t−1} diag(α_t). The gradient of α_t,
/// column by column the sum of W_{t−1} ∘ Ḡ_t, takes a state and a gradient that no pass has both
/// of. But r_t = α_t dα_t = Σ_rows W̄_t ∘ Ḡ_t changes by what the passes have:
///
///     r_t = r_{t+1} + q_t ∘ W_tᵀ dy_t − k_t ∘ (G_tᵀ e_t + β_t W̄_tᵀ c_t)
///
/// Summed up from the end of a stretch, where r is taken from the state and its gradient, and
/// divided by α; for one decay a token its sum is. A stretch ends after some tokens, so that
/// rounding does not add up, and before every token with a decay near 0, whose gradient is taken
/// from the matrices. The forward pass leaves the states that this needs. Where every token has a
/// decay below 1/64, in any column, a stretch is one token: each copies the matrices in and out,
/// and up to 512 states are kept.

namespace fw::detail {

/// What the forward pass leaves, and room for the backward pass.
template <class S, class State> struct DecayTrace {
  Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic> errors, corrections, decay_terms;
  std::vector<State> states;     // before tokens 0, C, 2C, … and after the last
  std::vector<State> stretches;  // the states in which the stretches of C tokens begin
};

inline constexpr Index decay_interval = 512;  // C

inline namespace FASTWEIGHTS_KERNELS {

template <class M, class Trace>
void scan_leaving_states(const M& m, StateOf<M>& s, const WriteSequence<M>& in,
                         const ReadSequence<M>& reads, OutSequence<M>& out, Trace& trace) {
  const auto signature = m.signature();
  const Index total = in.key.cols();
  if constexpr (M::has_delta_term) trace.errors.resize(in.value.rows(), total);
  trace.states.resize(static_cast<std::size_t>((total + decay_interval - 1) / decay_interval + 1),
                      s);
  auto kept = trace.states.begin();
  for (Index t = 0; t < total; t += decay_interval) {
    *kept++ = s;
    const Index count = std::min(decay_interval, total - t);
    auto answers = steps(out, signature.out(), t, count);
    scan_by_kernel(
        m, s, steps(in, signature.write(), t, count), steps(reads, signature.read(), t, count),
        answers,
        M::has_delta_term ? columns_of(trace.errors).from(t) : Columns<typename M::Scalar>{});
  }
  *kept = s;
}

/// The backward pass of a rule M; `tokens` of the sequence but for errors and room.
template <class M, class Trace> class DecayBackward {
 public:
  using S = typename M::Scalar;
  using State = StateOf<M>;

  DecayBackward(const M& m, Trace& trace, const BackwardTokens<S>& tokens,
                const WriteSequence<M>& in, const WriteGradSequence<M>& dw)
      : m_(m), trace_(trace), tokens_(tokens), in_(in), dw_(dw) {
    trace.decay_terms.resize(M::decay_kind == DecayKind::scalar ? 1 : in.key.rows(),
                             std::min(decay_interval, in.key.cols()));
    if constexpr (M::has_delta_term) {
      trace.corrections.resize(in.value.rows(), in.key.cols());
      tokens_.u = columns_of(trace.errors);
      tokens_.c = columns_of(trace.corrections);
    }
  }

  /// From the gradient of the final state to that of the initial one, in place.
  void run(State& ds) {
    const Index total = in_.key.cols();
    for (std::size_t i = trace_.states.size() - 1; i-- > 0;) {
      const Index first = static_cast<Index>(i) * decay_interval;
      Index end = std::min(total, first + decay_interval);
      std::size_t stretch = begin_stretches(trace_.states[i], first, end);
      const State* after = &trace_.states[i + 1];
      while (stretch-- > 0) {
        const State& before = trace_.stretches[stretch];
        const Index begin = begins_[stretch];
        run_stretch(before, *after, ds, begin, end - begin);
        after = &before;
        end = begin;
      }
    }
  }

 private:
  using Vector = Eigen::Matrix<S, Eigen::Dynamic, 1>;

  WriteToken<M> token(Index t) const {
    return token_at<WriteToken<M>>(in_, m_.signature().write(), t);
  }
  static bool near_zero(const S& decay) { return !(std::abs(decay) >= S(1) / S(64)); }
  template <class D> static bool near_zero(const Eigen::MatrixBase<D>& decay) {
    return !(decay.cwiseAbs().minCoeff() >= S(1) / S(64));
  }

  // How many stretches there are from `first` to `end`, and the states and tokens they begin with.
  std::size_t begin_stretches(const State& state, Index first, Index end) {
    std::size_t count = 0;
    Index reached = first;
    for (Index t = first; t < end; ++t) {
      if (t > first && !near_zero(token(t).decay)) continue;
      begin_stretch(count, count == 0 ? state : trace_.stretches[count - 1], t);
      for (; reached < t; ++reached) m_.write(trace_.stretches[count], token(reached));
      ++count;
    }
    return count;
  }
  void begin_stretch(std::size_t i, const State& state, Index t) {
    if (i == trace_.stretches.size()) {
      trace_.stretches.push_back(state);
    } else {
      trace_.stretches[i] = state;
    }
    begins_[i] = t;
  }

  void run_stretch(const State& before, const State& after, State& ds, Index begin, Index count) {
    if constexpr (M::decay_kind == DecayKind::scalar)
      r_.setConstant(1, after.W.cwiseProduct(ds.W).sum());
    else
      r_ = after.W.cwiseProduct(ds.W).colwise().sum().transpose();
    faded_ = before;
    apply_decay(faded_.W, token(begin).decay);
    auto tokens = tokens_.from(begin);
    tokens.decay_terms = columns_of(trace_.decay_terms);
    backward_pairs<M::has_delta_term, M::decay_kind>(faded_.W, ds.W, tokens, count);
    const auto gradient = [&](Index t) {
      return token_at<WriteGradToken<M>>(dw_, m_.signature().write(), t);
    };
    for (Index t = count - 1; t > 0; --t) {
      r_ += trace_.decay_terms.col(t);
      auto d = gradient(begin + t);
      add_quotient(r_, token(begin + t).decay, d.decay);
    }
    auto d = gradient(begin);
    apply_decay_vjp(before.W, token(begin).decay, ds.W, d.decay);
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
  BackwardTokens<S> tokens_;
  const WriteSequence<M>& in_;
  const WriteGradSequence<M>& dw_;
  Vector r_;
  State faded_;
  Index begins_[decay_interval];
};

/// From the gradient of the final state to that of the initial one, in place, and to the tokens'.
template <class M, class Trace>
void decay_backward(const M& m, Trace& trace, const WriteSequence<M>& in,
                    const ReadSequence<M>& reads, const OutGradSequence<M>& dy, StateOf<M>& ds,
                    const WriteGradSequence<M>& dw, const ReadGradSequence<M>& dr) {
  DecayBackward(m, trace, backward_tokens(m, in, reads, dy, dw, dr), in, dw).run(ds);
}

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
