#pragma once

#include <fastweights/kernels/backward/backward.hpp>
#include <fastweights/kernels/rule.hpp>
#include <fastweights/math/decay.hpp>
#include <optional>

/// \file
/// The backward pass of a kernel rule, whose corrections have the gradients of
/// correction_gradient.hpp. With `reads_first` a rule also has
///
///     void own_read_vjp(const StateOf<M>& s, const ReadToken&, const OutGradToken& dy,
///                       StateOf<M>& ds, ReadGradToken& dt) const;
///
/// for what a read does besides W q. With `plain_coefficients` small matrices go by pairs, which
/// are faster.

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// The errors of the forward pass, and what the backward pass keeps for the forward pass over W:
/// the removals, or with pairs du. One per correction.
template <class S> struct ErrorTrace {
  Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic> errors, removals;
};

template <class M> constexpr CorrectionLayout layout_of() {
  constexpr Index per_token = corrections_per_token<M>();
  const bool removes = products_of<M>() == Products::removal;
  constexpr UpdateOrder order = order_of<M>();
  const Index lookup_step = !M::has_delta_term ? 0 : removes ? per_token : 1;
  return {per_token, lookup_step, order.lookup_before_decay, order.reads_first,
          !has_corrections<M>};
}

/// True if M says `plain_coefficients` and has at most one β and one correction per token.
template <class M> constexpr bool has_plain_coefficients() {
  if constexpr (says_plain_coefficients<M>) {
    if constexpr (requires(const WriteToken<M>& t) { t.beta; })
      return M::has_delta_term && !is_per_entry<decltype(WriteToken<M>::beta)>;
    return true;
  }
  return false;
}

/// The gradients of a rule's sequence, as ChunkPasses needs them. `s` has the slow weights.
template <class M> class RuleGradients {
 public:
  using Scalar = typename M::Scalar;
  using S = Scalar;
  static constexpr CorrectionLayout layout = layout_of<M>();

  RuleGradients(const M& m, const StateOf<M>& s, const WriteSequence<M>& inputs,
                const ReadSequence<M>& queries, const OutGradSequence<M>& dy, StateOf<M>& ds,
                const WriteGradSequence<M>& dinputs, const ReadGradSequence<M>& dqueries)
      : m_(m),
        s_(s),
        inputs_(inputs),
        queries_(queries),
        dy_(dy),
        ds_(ds),
        dinputs_(dinputs),
        dqueries_(dqueries) {
    buffer_size_ = buffer_size<M>(s.W.cols(), s.W.rows());
    if (buffer_size_ > 0) buffer_ = thread_buffer<S, RuleGradients>(chunk_size * buffer_size_);
  }

  /// The errors of all corrections, and room for the removals, d_v×(N T).
  Columns<S> errors, removals;
  template <class Trace> void set_trace(Trace& trace) {
    if constexpr (layout.lookup_step > 0) {
      trace.removals.resize(trace.errors.rows(), trace.errors.cols());
      errors = columns_of(trace.errors);
      removals = columns_of(trace.removals);
    }
  }
  /// Where the terms of decays are added for the tokens from `terms_first` on.
  Columns<S> terms;
  Index terms_first = 0;

  Correction<S> get(Index i, Index slot) {
    const Index t = i / layout.per_token;
    return correction_of(m_, s_, input(t), query(t), static_cast<S*>(nullptr), i % layout.per_token,
                         buffer_ + slot * buffer_size_);
  }
  const S* output_gradient(Index t) const { return columns_of(dy_.output)(t); }
  const S* error(Index i) const { return errors(i); }
  S* removal(Index i) const { return removals(i); }
  S* decay_terms(Index t) const { return terms(t - terms_first); }

  ChunkBuffers<S>& buffers() {
    if (!buffers_) buffers_.emplace(s_.W.rows(), s_.W.cols());
    return *buffers_;
  }

  /// Adds the gradients of correction i. `own_read` is false for a part of a read.
  void add(Index i, const CorrectionGradient<S>& g, [[maybe_unused]] bool own_read = true) {
    const Index t = i / layout.per_token;
    auto dinput = token_at<WriteGradToken<M>>(dinputs_, m_.signature().write(), t);
    add_correction_gradients(m_, s_, input(t), i % layout.per_token, g, ds_, dinput);
    if (g.query == nullptr) return;
    auto dquery = token_at<ReadGradToken<M>>(dqueries_, m_.signature().read(), t);
    add_gradient(dquery.query, g.query);
    if constexpr (layout.reads_first)
      if (own_read)
        m_.own_read_vjp(s_, query(t), token_at<OutGradToken<M>>(dy_, m_.signature().out(), t), ds_,
                        dquery);
  }

  void list_prefetches(ChunkPrefetch<S>& prefetch, Index i, Index count, bool backward) const {
    const Index t = i / layout.per_token, tokens = count / layout.per_token;
    const Index dv = s_.W.rows(), dk = s_.W.cols(), all = queries_.query.cols();
    const auto add = [&](const auto& x, Index rows) {
      const Index per_token = x.cols() / all;
      prefetch.add(columns_of(x).from(t * per_token), rows, tokens * per_token);
    };
    add(inputs_.key, dk);
    add(queries_.query, dk);
    add(dy_.output, dv);
    if constexpr (M::has_delta_term) {
      prefetch.add(errors.from(i), dv, count);
      prefetch.add(removals.from(i), dv, count);
    }
    if constexpr (requires(WriteToken<M> & x) { x.decay.data(); }) add(inputs_.decay, dk);
    add(dinputs_.key, dk);
    // A rule that looks up its keys has the errors, and does not need the values.
    if constexpr (has_corrections<M> || !M::has_delta_term) add(inputs_.value, dv);
    if (backward)
      add(dinputs_.value, dv);
    else
      add(dqueries_.query, dk);
  }

  /// True if the passes by pairs take the rule, and its tokens from `first` on for them.
  static constexpr bool has_pairs = has_plain_coefficients<M>();
  const BackwardTokens<S>& pair_tokens(Index first) requires has_pairs {
    auto& t = pair_tokens_ = {};
    t.k = columns_of(inputs_.key);
    t.q = columns_of(queries_.query);
    t.dy = columns_of(dy_.output);
    t.dk = columns_of(dinputs_.key);
    t.dv = columns_of(dinputs_.value);
    t.dq = columns_of(dqueries_.query);
    constants_ = get(first * layout.per_token, 0).coefficients;
    if constexpr (M::has_delta_term) {
      t.e = errors;
      t.du = removals;
      t.beta = columns_of(inputs_.beta);
      t.dbeta = columns_of(dinputs_.beta);
    } else {
      t.e = columns_of(inputs_.value);
      constants_.beta *= constants_.value_scale;
      t.beta = {&constants_.beta, 0};
    }
    if constexpr (requires { inputs_.decay; })
      t.decays = columns_of(inputs_.decay);
    else
      t.decays = {&constants_.decay, 0};
    t = t.from(first);
    t.decay_terms = terms;
    return t;
  }

  /// Look-up and read of the token at t before its decay, from the state `W` before it. G is
  /// the gradient of W.
  template <class Matrix> void add_before_decay(Index t, const Matrix& W, Matrix& G) {
    using Vector = GradientVector<S>;
    const Index dv = W.rows(), dk = W.cols();
    const auto add = [&](const S* x, const S* gradient, S factor) {
      scaled_ = factor * Vector(gradient, dv);
      product_.noalias() = W.transpose() * scaled_;
      G.noalias() += scaled_ * Vector(x, dk).transpose();
      return product_.data();
    };
    const Index i = t * layout.per_token;
    if constexpr (layout.lookup_before_decay && layout.lookup_step > 0) {
      const Correction<S> c = get(i, 0);
      CorrectionGradient<S> g;
      g.lookup = add(c.lookup, removal(i), S(1));
      this->add(i, g);
    }
    if constexpr (layout.reads_first) {
      const Index last = i + layout.per_token - 1;
      const Correction<S> c = get(last, 0);
      CorrectionGradient<S> g;
      g.query = add(c.query, output_gradient(t), c.coefficients.read_scale);
      this->add(last, g, false);
    }
  }

 private:
  WriteToken<M> input(Index t) const {
    return token_at<WriteToken<M>>(inputs_, m_.signature().write(), t);
  }
  ReadToken<M> query(Index t) const {
    return token_at<ReadToken<M>>(queries_, m_.signature().read(), t);
  }

  const M& m_;
  const StateOf<M>& s_;
  const WriteSequence<M>& inputs_;
  const ReadSequence<M>& queries_;
  const OutGradSequence<M>& dy_;
  StateOf<M>& ds_;
  const WriteGradSequence<M>& dinputs_;
  const ReadGradSequence<M>& dqueries_;
  Index buffer_size_ = 0;
  S* buffer_ = nullptr;
  std::optional<ChunkBuffers<S>> buffers_;
  Eigen::Matrix<S, Dynamic, 1> scaled_, product_;
  BackwardTokens<S> pair_tokens_;
  TokenCoefficients<S> constants_;
};

}  // namespace fw::detail
