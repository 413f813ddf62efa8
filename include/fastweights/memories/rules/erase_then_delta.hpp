#pragma once

#include <algorithm>
#include <fastweights/core/signatures.hpp>
#include <fastweights/core/stability.hpp>
#include <fastweights/kernels/backward/forms.hpp>
#include <fastweights/memories/rules/correction.hpp>
#include <fastweights/memories/rules/matrix_rule.hpp>
#include <type_traits>

namespace fw::inline FASTWEIGHTS_ABI {

/// Write (k, v, e, β, γ, α): a key to write to and a key to erase, with a strength each. α is one
/// decay per token, or one per key row. Read q.
template <int Dk, int Dv, bool PerRow> struct KeyValueErase : QueryOutput<Dk, Dv> {
  template <class C> struct Write {
    vec<C, Dk> key;
    vec<C, Dv> value;
    vec<C, Dk> erase;       ///< e, d_k rows
    num<C> beta;            ///< β of the write
    num<C> erase_strength;  ///< γ
    std::conditional_t<PerRow, vec<C, Dk>, num<C>> decay;
    static constexpr auto names =
        fw::names("key", "value", "erase", "beta", "erase_strength", "decay");
    static constexpr auto roles =
        fw::roles(Role::key, Role::value, Role::key, Role::strength, Role::strength, Role::decay);
  };
  template <int NewDk> using with_keys_of = KeyValueErase<NewDk, Dv, PerRow>;

  Write<Extents> write() const {
    const MemberExtent key{this->dk, 1}, one{1, 1};
    return {key, {this->dv, 1}, key, one, one, PerRow ? key : one};
  }
};

//| `EraseThenDelta` | W = W diag(α), W −= γ W e eᵀ, then W += β (v − W k) kᵀ | y = W q | 11 d_v
//|   d_k | yes | Li et al. 2026, 2606.26560
/// Erase, then delta: the state decays and forgets what it holds under one key; then the delta rule
/// writes under another.
///
///     W̄_t = W_{t−1} diag(α_t)     Ŵ_t = W̄_t − γ_t W̄_t e_t e_tᵀ
///     W_t = Ŵ_t + β_t (v_t − Ŵ_t k_t) k_tᵀ     y_t = W_t q_t
///
/// With γ = 0 it is the gated delta rule.
///
/// Shapes: W d_v×d_k, k, e and q d_k, v and y d_v, β and γ 1, α 1 or, if PerRow, d_k. Cost per
/// token: 11 d_v d_k flops. β, γ ≥ 0. Stable for β‖k‖² ≤ 2 and γ‖e‖² ≤ 2: normalise both keys. A
/// zero key writes or erases nothing. Throws std::invalid_argument when a size does not fit. Li
/// et al. 2026, arXiv 2606.26560.
template <class S, int Dk = Dynamic, int Dv = Dk, bool PerRow = true>
class EraseThenDelta
    : public MatrixRule<EraseThenDelta<S, Dk, Dv, PerRow>, S, KeyValueErase<Dk, Dv, PerRow>> {
  using Base = MatrixRule<EraseThenDelta<S, Dk, Dv, PerRow>, S, KeyValueErase<Dk, Dv, PerRow>>;

 public:
  using Base::Base;
  using typename Base::OwnedState, typename Base::Signature;
  static constexpr std::string_view name = "EraseThenDelta";
  static constexpr auto decay_kind =
      PerRow ? detail::DecayKind::per_channel : detail::DecayKind::scalar;
  static constexpr bool has_delta_term = true, kernel_backward = true;
  static constexpr Index corrections = 2, key_buffers = 0, value_buffers = 1;

  template <class T> auto cast() const {
    return EraseThenDelta<T, Dk, Dv, PerRow>(Base::signature().sizes());
  }

  void write(OwnedState& s, const WriteToken<EraseThenDelta>& t) const {
    const auto zero = detail::PlainArray<S, Dv, 1>::Zero(Base::dv());
    detail::correct<Dv>(s.W, detail::decayed(t.decay, t.erase), zero, t.erase_strength, t.decay,
                        t.erase);
    detail::correct<Dv>(s.W, t.key, t.value, t.beta, S(1), t.key);
  }
  static constexpr bool key_bounds_strength = true;
  Violation violation(const WriteToken<EraseThenDelta>& t) const {
    if (const Violation v = delta_violation(t.beta, t.key)) return v;
    return delta_violation(t.erase_strength, t.erase,
                           "erase_strength times the squared norm of erase");
  }

  /// The kernels' corrections of a token: the first has no value.
  template <class StateLike>
  void correction(StateLike&, const WriteToken<EraseThenDelta>& t, const ReadToken<EraseThenDelta>&,
                  Index j, S* buffer, detail::Correction<S>& c) const {
    if (j == 1) {
      c.coefficients.beta = t.beta;
      return;
    }
    std::fill_n(buffer, Base::dv(), S(0));
    c.lookup = c.key = c.bonus_key = t.erase.data();
    c.value = buffer;
    c.coefficients.beta = t.erase_strength;
    if constexpr (!PerRow) c.coefficients.decay = t.decay;
  }
  void correction_vjp(const OwnedState&, const WriteToken<EraseThenDelta>&, Index j,
                      const detail::CorrectionGradient<S>& g, OwnedState&,
                      WriteGradToken<EraseThenDelta>& dt) const {
    auto& dkey = j == 0 ? dt.erase : dt.key;
    detail::add_gradient(dkey, g.key);
    detail::add_gradient(dkey, g.lookup);
    if (j == 1) detail::add_gradient(dt.value, g.value);
    detail::add_strength_gradient(j == 0 ? dt.erase_strength : dt.beta, g);
  }
};

}  // namespace fw
