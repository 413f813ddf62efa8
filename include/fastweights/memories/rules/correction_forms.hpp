#pragma once

#include <array>
#include <fastweights/core/errors.hpp>
#include <fastweights/core/stability.hpp>
#include <fastweights/kernels/backward/correction_gradient.hpp>
#include <fastweights/math/decay.hpp>

/// \file
/// What follows from the corrections of a rule (kernels/rule.hpp), for one token and in any scalar:
/// the gradient of a write, a segment with one more write, the condition of stability. With the
/// corrections j = 1 … N of a token, and W_0 = W diag(α),
///
///     e_j = s_j v_j − r_j W_{j−1} a_j     u_j = β_j ∘ e_j     W_j = W_{j−1} + u_j b_jᵀ
///
/// where s and r are value_scale and retrieved_scale. With `lookup_before_decay` a_1 looks up W.

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// True if a rule says its corrections.
template <class M> constexpr bool says_corrections() {
  return has_corrections<M> || has_coefficients<M>;
}
/// True if the gradients of a rule's corrections are known.
template <class M> constexpr bool has_correction_gradients() {
  if constexpr (has_corrections<M>) return has_correction_vjp<M>;
  return has_coefficients<M> && says_plain_coefficients<M>;
}
/// True if a correction has one β per value row: `row_strengths` of kernels/rule.hpp.
template <class M> constexpr bool has_row_strengths() {
  if constexpr (requires { M::row_strengths; }) return M::row_strengths;
  if constexpr (has_corrections<M>) return false;
  return requires(const WriteToken<M>& t) { t.beta.data(); };
}
/// True if a write composes into a segment by its corrections.
template <class M> constexpr bool has_correction_segments() {
  if constexpr (says_corrections<M>()) return !has_row_strengths<M>() && !reads_first<M>();
  return false;
}
/// True if correction j of a token looks W up.
template <class M> constexpr bool looks_up(Index j) {
  return M::has_delta_term && (j == 0 || products_of<M>() != Products::removal);
}

/// Calls f with the corrections of a token.
template <class M, class State, class F>
void with_corrections(const M& m, const State& s, const WriteToken<M>& t, const F& f) {
  using S = typename M::Scalar;
  constexpr Index count = corrections_per_token<M>();
  const auto W = m.state_extents().W;
  const Index size = buffer_size<M>(W.width, W.rows);
  scratch<S, Dynamic>(count * size, [&](auto& buffer) {
    std::array<Correction<S>, std::size_t(count)> c;
    for (Index j = 0; j < count; ++j)
      c[std::size_t(j)] = correction_of(m, s, t, ReadToken<M>{t.key.col(0)},
                                        static_cast<S*>(nullptr), j, buffer.data() + j * size);
    f(c);
  });
}

/// x becomes β ∘ x.
template <class X, class S> void scale_by_strength(X&& x, const Correction<S>& c) {
  if (c.betas != nullptr)
    x.array() *= GradientVector<S>(c.betas, x.size()).array();
  else
    x *= c.coefficients.beta;
}
/// x becomes α ∘ x, with the decay of a token's first correction.
template <class M, class X> void decay_by(X& x, const Correction<typename M::Scalar>& first) {
  if constexpr (M::decay_kind == DecayKind::per_channel)
    x.array() *= GradientVector<typename M::Scalar>(first.decays, x.size()).array();
  else if constexpr (M::decay_kind != DecayKind::none)
    x *= first.coefficients.decay;
}

/// The gradient of a write, from those of its corrections. Recomputes no state:
/// W_j x = W (α ∘ x) + Σ_{i≤j} u_i (b_i·x).
template <class M> class WriteGradient {
 public:
  using S = typename M::Scalar;
  using State = StateOf<M>;

  /// `c` are the token's corrections. `room` has `size` entries.
  WriteGradient(const M& m, const State& s, const WriteToken<M>& t, State& ds,
                WriteGradToken<M>& dt, const Correction<S>* c, S* room)
      : m_(m),
        s_(s),
        t_(t),
        ds_(ds),
        dt_(dt),
        c_(c),
        dv_(s.W.rows()),
        dk_(s.W.cols()),
        errors_(room, dv_, count),
        updates_(room + count * dv_, dv_, count),
        dupdate_(updates_.data() + count * dv_, dv_),
        dvalue_(dupdate_.data() + dv_, dv_),
        dretrieved_(dvalue_.data() + dv_, dv_),
        dkey_(dretrieved_.data() + dv_, dk_),
        along_keys_(dkey_.data() + dk_, dk_) {}

  static Index size(const State& s) { return (2 * count + 3) * s.W.rows() + 2 * s.W.cols(); }

  void run() {
    for (Index j = 0; j < count; ++j) find_update(j);
    for (Index j = count; j-- > 0;) add(j);
    add_decay();
  }

 private:
  static constexpr Index count = corrections_per_token<M>();
  using Vector = GradientVector<S>;
  using Room = Eigen::Map<Eigen::Matrix<S, Dynamic, 1>>;
  using Rooms = Eigen::Map<Eigen::Matrix<S, Dynamic, Dynamic>>;

  static bool before_decay(Index j) { return order_of<M>().lookup_before_decay && j == 0; }
  Vector lookup(Index j) const { return Vector(c_[j].lookup, dk_); }
  Vector key(Index j) const { return Vector(c_[j].key, dk_); }

  void find_update(Index j) {
    auto error = errors_.col(j);
    error = c_[j].coefficients.value_scale * Vector(c_[j].value, dv_);
    if (looks_up<M>(j)) {
      const S scale = c_[j].coefficients.retrieved_scale;
      along_keys_ = scale * lookup(j);
      if (!before_decay(j)) decay_by<M>(along_keys_, c_[0]);
      error.noalias() -= s_.W * along_keys_;
      for (Index i = 0; i < j; ++i)
        error -= (scale * product_sum(key(i), lookup(j))) * updates_.col(i);
    }
    updates_.col(j) = error;
    scale_by_strength(updates_.col(j), c_[j]);
  }

  void add(Index j) {
    CorrectionGradient<S> g;
    g.rows = dv_;
    dupdate_.noalias() = ds_.W * key(j);
    dkey_.noalias() = ds_.W.transpose() * updates_.col(j);
    dvalue_ = dupdate_;
    scale_by_strength(dvalue_, c_[j]);  // the gradient of e
    if (looks_up<M>(j)) {
      dretrieved_ = -c_[j].coefficients.retrieved_scale * dvalue_;
      add_lookup(j);
      g.lookup = along_keys_.data();
    }
    dvalue_ *= c_[j].coefficients.value_scale;
    g.key = dkey_.data(), g.value = dvalue_.data();
    g.update = dupdate_.data(), g.error = errors_.col(j).data();
    add_correction_gradients(m_, s_, t_, j, g, ds_, dt_);
  }
  void add_lookup(Index j) {
    along_keys_.noalias() = s_.W.transpose() * dretrieved_;
    if (before_decay(j)) return;  // add_decay adds to W's gradient
    decay_by<M>(along_keys_, c_[0]);
    for (Index i = 0; i < j; ++i) along_keys_ += product_sum(updates_.col(i), dretrieved_) * key(i);
    ds_.W.noalias() += dretrieved_ * lookup(j).transpose();
  }

  void add_decay() {
    static_assert(
        M::decay_kind != DecayKind::per_channel || requires { t_.decay; },
        "fastweights: the gradient of decays per key row needs the token's decay");
    if constexpr (M::decay_kind == DecayKind::none) {
    } else if constexpr (requires { t_.decay; }) {
      apply_decay_vjp(s_.W, t_.decay, ds_.W, dt_.decay);
    } else {
      ds_.W *= c_[0].coefficients.decay;
    }
    if (looks_up<M>(0) && before_decay(0)) ds_.W.noalias() += dretrieved_ * lookup(0).transpose();
  }

  const M& m_;
  const State& s_;
  const WriteToken<M>& t_;
  State& ds_;
  WriteGradToken<M>& dt_;
  const Correction<S>* c_;
  const Index dv_, dk_;
  Rooms errors_, updates_;
  Room dupdate_, dvalue_, dretrieved_, dkey_, along_keys_;
};

template <class M>
void write_gradient(const M& m, const StateOf<M>& s, const WriteToken<M>& t, StateOf<M>& ds,
                    WriteGradToken<M>& dt) {
  using S = typename M::Scalar;
  with_corrections(m, s, t, [&](const auto& c) {
    scratch<S, Dynamic>(WriteGradient<M>::size(s), [&](auto& room) {
      WriteGradient<M>(m, s, t, ds, dt, c.data(), room.data()).run();
    });
  });
}

/// Appends a write to a segment, whose `add` takes a look-up key of the undecayed W.
template <class M, class Segment>
void extend_by_corrections(const M& m, Segment& g, const WriteToken<M>& t) {
  using S = typename M::Scalar;
  using Vector = GradientVector<S>;
  const auto none = m.state_extents();  // the state is not used
  const Index dv = none.W.rows, dk = none.W.width;
  with_corrections(m, none, t, [&](const auto& c) {
    scratch<S, Dynamic>(dv + dk, [&](auto& room) {
      auto value = room.head(dv), lookup = room.tail(dk);
      for (Index j = 0; j < corrections_per_token<M>(); ++j) {
        const Correction<S>& each = c[std::size_t(j)];
        const auto& coefficients = each.coefficients;
        value = coefficients.value_scale * Vector(each.value, dv);
        lookup.setZero();
        if (looks_up<M>(j)) lookup = coefficients.retrieved_scale * Vector(each.lookup, dk);
        if (j == 0 && !order_of<M>().lookup_before_decay) decay_by<M>(lookup, c[0]);
        if (each.betas != nullptr)
          throw_invalid({M::name,
                         ": a correction has a strength per value row, so its writes are no "
                         "segment; say `row_strengths`"});
        const auto add = [&](const auto& decay) {
          g.add(lookup, value, coefficients.beta, decay, Vector(each.key, dk));
        };
        if constexpr (M::decay_kind == DecayKind::per_channel)
          if (j == 0) {
            add(Vector(each.decays, dk));
            continue;
          }
        add(coefficients.decay);
      }
    });
  });
}

/// The condition of delta_violation for every correction that looks up its own key.
template <class M> Violation violation_of_corrections(const M& m, const WriteToken<M>& t) {
  using S = typename M::Scalar;
  Violation result;
  with_corrections(m, m.state_extents(), t, [&](const auto& c) {
    for (const Correction<S>& each : c) {
      if (result || each.lookup != each.key) continue;
      const GradientVector<S> key(each.key, t.key.rows());
      const S scale = each.coefficients.retrieved_scale;
      result = each.betas == nullptr
                   ? delta_violation(S(scale * each.coefficients.beta), key)
                   : delta_violation(scale * GradientVector<S>(each.betas, t.value.rows()), key);
    }
  });
  return result;
}

}  // namespace fw::detail
