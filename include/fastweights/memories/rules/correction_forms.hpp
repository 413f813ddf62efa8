#pragma once

#include <array>
#include <fastweights/core/errors.hpp>
#include <fastweights/core/stability.hpp>
#include <fastweights/kernels/backward/correction_gradient.hpp>
#include <fastweights/math/decay.hpp>

/// \file
/// What follows from the corrections of a rule (kernels/rule.hpp), for one token and in any scalar:
/// a segment with one more write, and the condition of stability. The gradient of a write is in
/// write_gradient.hpp, several tokens in correction_chunk.hpp. With the corrections j = 1 … N of a
/// token, and W_0 = W diag(α),
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
