#pragma once

#include <algorithm>
#include <fastweights/memories/rules/causal.hpp>
#include <fastweights/memories/rules/correction_forms.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// True if a chunk of M's corrections is a system of matrix products: W decays by one number, and
/// is read after the write.
template <class M> constexpr bool has_correction_chunk() {
  if constexpr (says_corrections<M>())
    return (M::decay_kind == DecayKind::none || M::decay_kind == DecayKind::scalar) &&
           !reads_first<M>();
  else
    return false;
}

/// The corrections of a chunk, one per column.
template <class M> struct ChunkCorrections {
  using S = typename M::Scalar;
  using Matrix = Eigen::Matrix<S, Dynamic, Dynamic>;
  static constexpr Index per_token = corrections_per_token<M>();

  Matrix lookups, keys, values;  // r a, b and s v
  Matrix betas;                  // one row, or d_v
  // One per token: the factor of a read, and α.
  Eigen::Matrix<S, 1, Dynamic> read_scales, token_decays;

  template <class State>
  ChunkCorrections(const M& m, const State& s, const WriteSequence<M>& inputs, Index tokens)
      : lookups(s.W.cols(), M::has_delta_term ? per_token * tokens : 0),
        keys(s.W.cols(), per_token * tokens),
        values(s.W.rows(), per_token * tokens),
        read_scales(tokens),
        token_decays(tokens) {
    for (Index t = 0; t < tokens; ++t)
      with_corrections(
          m, s, token_at<WriteToken<M>>(inputs, m.signature().write(), t), [&](const auto& c) {
            if (t == 0) {
              const bool per_row =
                  std::any_of(c.begin(), c.end(), [](const auto& x) { return x.betas != nullptr; });
              betas.resize(per_row ? values.rows() : 1, keys.cols());
            }
            read_scales[t] = c.back().coefficients.read_scale;
            token_decays[t] = c[0].coefficients.decay;
            for (Index j = 0; j < per_token; ++j) set(t * per_token + j, c[std::size_t(j)]);
          });
  }

 private:
  void set(Index i, const Correction<S>& c) {
    using Vector = GradientVector<S>;
    if constexpr (M::has_delta_term) {
      if (looks_up<M>(i % per_token))
        lookups.col(i) = c.coefficients.retrieved_scale * Vector(c.lookup, lookups.rows());
      else
        lookups.col(i).setZero();
    }
    keys.col(i) = Vector(c.key, keys.rows());
    values.col(i) = c.coefficients.value_scale * Vector(c.value, values.rows());
    if (c.betas != nullptr)
      betas.col(i) = Vector(c.betas, betas.rows());
    else
      betas.col(i).setConstant(c.coefficients.beta);
  }
};

/// A chunk in matrix products: the WY form. With γ_t = α_1 ⋯ α_t, the updates solve a unit
/// triangular system,
///
///     u_i = β_i (v_i − γ_t W a_i − Σ_{h<i} (α_{t'+1} ⋯ α_t) u_h (b_h·a_i))
///
/// for a correction i of token t and h of token t' ≤ t. Before its decay, W is looked up at t − 1.
/// Then y_t = γ_t W q_t + Σ_h (α_{t'+1} ⋯ α_t) u_h (b_h·q_t), with all h of t' ≤ t.
template <class M> class CorrectionChunk {
 public:
  using S = typename M::Scalar;
  using Matrix = Eigen::Matrix<S, Dynamic, Dynamic>;

  CorrectionChunk(const M& m, StateOf<M>& s, const WriteSequence<M>& inputs, Index tokens)
      : s_(s), tokens_(tokens), c_(m, s, inputs, tokens) {
    if constexpr (decays) decays_ = causal_decays<S>(c_.token_decays);
  }

  template <class Queries, class Out> void run(const Queries& queries, Out& out) {
    set_updates();
    set_product_with_state(out, queries, [](Index t) { return t; });
    Matrix weights(updates_.cols(), tokens_);
    set_product(weights, c_.keys.transpose(), queries);
    decay_products(
        weights, [](Index t) { return (t + 1) * per_token; }, [](Index t) { return t; });
    add_product(out, updates_, weights);
    out *= c_.read_scales.asDiagonal();
    if constexpr (decays) {
      s_.W *= of_state(tokens_ - 1);
      for (Index h = 0; h < updates_.cols(); ++h)
        updates_.col(h) *= decays_(h / per_token, tokens_ - 1);
    }
    add_product(s_.W, updates_, c_.keys.transpose());
  }

 private:
  static constexpr Index per_token = corrections_per_token<M>();
  static constexpr bool decays = M::decay_kind != DecayKind::none;

  // The token whose decay is the last that the look-up of correction i sees.
  static Index seen_by(Index i) {
    return order_of<M>().lookup_before_decay && i % per_token == 0 ? i / per_token - 1
                                                                   : i / per_token;
  }
  // γ_t, and 1 before the first token.
  S of_state(Index t) const { return t < 0 ? S(1) : c_.token_decays[0] * decays_(0, t); }
  // W X, with the decays up to token seen(i) for column i.
  template <class To, class X, class F>
  void set_product_with_state(To& to, const X& x, [[maybe_unused]] const F& seen) const {
    if constexpr (decays) {
      Eigen::Matrix<S, 1, Dynamic> factors(x.cols());
      for (Index i = 0; i < x.cols(); ++i) factors[i] = of_state(seen(i));
      set_decayed_product<S>(to, s_.W, x, factors);
    } else {
      set_product(to, s_.W, x);
    }
  }
  // Column i becomes its products with the first count(i) writes, times the decays from each up to
  // token seen(i), and 0 for later ones.
  template <class X, class Count, class F>
  void decay_products(X& products, const Count& count, const F& seen) const {
    using A = typename X::Scalar;
    for (Index i = 0; i < products.cols(); ++i) {
      const Index earlier = count(i);
      products.col(i).tail(products.rows() - earlier).setZero();
      if (!decays || earlier == 0) continue;
      auto column = products.col(i).head(earlier);
      if constexpr (per_token == 1)
        column.array() *= decays_.col(seen(i)).head(earlier).array().template cast<A>();
      else
        for (Index h = 0; h < earlier; ++h) column[h] *= A(decays_(h / per_token, seen(i)));
    }
  }

  void set_updates() {
    if constexpr (M::has_delta_term) {
      updates_.resize(c_.values.rows(), c_.values.cols());
      set_product_with_state(updates_, c_.lookups, seen_by);
      solve_chunk(
          c_.keys, c_.lookups, c_.betas, updates_,
          [&](auto& products) {
            decay_products(
                products, [](Index i) { return i; }, seen_by);
          },
          [&](auto& u, const auto& products) { solve(u, products); });
    } else {
      updates_ = c_.values;
      scale(updates_, c_.betas);
    }
  }
  template <class U, class P> void solve(U& u, const P& products) const {
    using A = typename U::Scalar;
    for (Index i = 0; i < u.cols(); ++i) {
      auto update = u.col(i);
      update.noalias() += u.leftCols(i) * products.col(i).head(i);
      update = c_.values.col(i).template cast<A>() - update;
      scale(update, c_.betas.col(i).template cast<A>());
    }
  }
  // Scales columns by β, one number or one per row.
  template <class U, class B> static void scale(U& u, const B& betas) {
    if (betas.rows() == 1)
      u.array().rowwise() *= betas.row(0).array();
    else
      u.array() *= betas.array();
  }

  StateOf<M>& s_;
  Index tokens_;
  ChunkCorrections<M> c_;
  Matrix updates_, decays_;
};

}  // namespace fw::detail
