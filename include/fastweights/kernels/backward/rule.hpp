#pragma once

#include <fastweights/kernels/backward/backward.hpp>
#include <fastweights/kernels/rule.hpp>

/// \file
/// The backward pass of a kernel rule whose state is W, and slow weights if need be. A rule with
/// `correction` has besides
///
///     void correction_vjp(const WriteToken&, const ReadToken&, Index j, const Correction<S>& c,
///                         const CorrectionGradient<S>& g, const StateOf<M>& s, StateOf<M>& ds,
///                         WriteGradToken&, ReadGradToken&) const;
///
/// It adds the gradients of correction j to those of the token. The kernels call it twice: first
/// with `key`, `value`, `update` and `error`, then with the others; what is not meant is null.
/// `add_gradient(to, g.key)` adds one that is not null, and `add_product(to, x, g.key)` adds x ∘
/// it.

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// to += gradient, unless it is null.
template <class To, class S> void add_gradient(To&& to, const S* gradient) {
  if (gradient != nullptr)
    to += Eigen::Map<const Eigen::Matrix<S, Dynamic, 1>>(gradient, to.size());
}
/// to += factor ∘ gradient, unless it is null.
template <class To, class Factor, class S>
void add_gradient(To&& to, const Factor& factor, const S* gradient) {
  if (gradient != nullptr)
    to += Eigen::Map<const Eigen::Matrix<S, Dynamic, 1>>(gradient, to.size()).cwiseProduct(factor);
}
/// The gradient of β, a number or one per row.
template <class S> void add_strength_gradient(S& dbeta, const CorrectionGradient<S>& g, Index dv) {
  using Vector = Eigen::Map<const Eigen::Matrix<S, Dynamic, 1>>;
  if (g.update != nullptr) dbeta += g.error_scale * Vector(g.update, dv).dot(Vector(g.error, dv));
}
template <class S, class To>
void add_strength_gradient(To& dbeta, const CorrectionGradient<S>& g, Index dv) {
  if (g.update != nullptr)
    add_gradient(dbeta, g.error_scale * Eigen::Map<const Eigen::Matrix<S, Dynamic, 1>>(g.error, dv),
                 g.update);
}

template <class M> constexpr CorrectionLayout layout_of() {
  constexpr Index per_token = corrections_per_token<M>();
  const bool removes = products_of<M>() == Products::removal;
  constexpr Order order = order_of<M>();
  return {per_token,
          !M::has_delta_term ? 0
          : removes          ? per_token
                             : 1,
          order.lookup_before_decay, order.reads_first};
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

  /// Adds the gradients of correction i.
  void add(Index i, const Correction<S>& c, const CorrectionGradient<S>& g) {
    const Index t = i / layout.per_token, j = i % layout.per_token;
    auto dinput = token_at<WriteGradToken<M>>(dinputs_, m_.signature().write(), t);
    auto dquery = token_at<ReadGradToken<M>>(dqueries_, m_.signature().read(), t);
    if constexpr (has_corrections<M>) {
      m_.correction_vjp(input(t), query(t), j, c, g, s_, ds_, dinput, dquery);
    } else {
      add_gradient(dinput.key, g.key);
      add_gradient(dinput.key, g.lookup);
      add_gradient(dinput.value, g.value);
      add_gradient(dquery.query, g.query);
      if constexpr (requires { dinput.beta; }) add_strength_gradient(dinput.beta, g, s_.W.rows());
    }
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
    if constexpr (M::has_delta_term) prefetch.add(errors.from(i), dv, count);
    if constexpr (requires(WriteToken<M> & x) { x.decay.data(); }) add(inputs_.decay, dk);
    add(dinputs_.key, dk);
    if (backward || !M::has_delta_term) add(inputs_.value, dv);
    if (backward) {
      add(dinputs_.value, dv);
    } else {
      if constexpr (M::has_delta_term) prefetch.add(removals.from(i), dv, count);
      add(dqueries_.query, dk);
    }
  }

  /// What the token at t looks up and reads before its decay, from the state `W` before it. G is
  /// the gradient of W.
  template <class Matrix> void add_before_decay(Index t, const Matrix& W, Matrix& G) {
    using Vector = Eigen::Map<const Eigen::Matrix<S, Dynamic, 1>>;
    Eigen::Matrix<S, Dynamic, 1> product;
    const Index dv = W.rows(), dk = W.cols();
    const auto add = [&](const S* x, const S* gradient, S factor) {
      product.noalias() = W.transpose() * Vector(gradient, dv) * factor;
      G.noalias() += Vector(gradient, dv) * Vector(x, dk).transpose() * factor;
      return product.data();
    };
    const Index i = t * layout.per_token;
    if (layout.lookup_before_decay && layout.lookup_step > 0) {
      const Correction<S> c = get(i, 0);
      CorrectionGradient<S> g;
      g.lookup = add(c.lookup, removal(i), S(1));
      this->add(i, c, g);
    }
    if (layout.reads_first) {
      const Index last = i + layout.per_token - 1;
      const Correction<S> c = get(last, 0);
      CorrectionGradient<S> g;
      g.query = add(c.query, output_gradient(t), c.coefficients.read_scale);
      this->add(last, c, g);
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
};

}  // namespace fw::detail
