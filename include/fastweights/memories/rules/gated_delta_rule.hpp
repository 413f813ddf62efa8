#pragma once

#include <fastweights/core/decay_signatures.hpp>
#include <fastweights/kernels/backward/forms.hpp>
#include <fastweights/math/decay.hpp>
#include <fastweights/memories/rules/matrix_rule.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

//| `GatedDeltaRule` | W = α W, then W += β (v − W k) kᵀ | y = W q | 7 d_v d_k | yes | Yang et
//|   al. 2024, 2412.06464
//| … with `KeyValueBetaVectorDecay` | one α per key row: Kimi delta attention | y = W q | 7 d_v
//|   d_k | yes | Kimi Team 2025, 2510.26692
/// The gated delta rule: the state decays, then the delta rule updates the value under the key.
///
///     W̄_t = W_{t−1} diag(α_t)     u_t = β_t (v_t − W̄_t k_t)
///     W_t = W̄_t + u_t k_tᵀ        y_t = W_t q_t
///
/// α in (0, 1] is one decay per token (`KeyValueBetaDecay`, the default) or one per key row
/// (`KeyValueBetaVectorDecay`: Kimi delta attention). α = 1 is the delta rule.
///
/// Shapes: W d_v×d_k, k and q d_k (feature-mapped already), v and y d_v, β 1, α 1 or d_k. Cost per
/// token: 7 d_v d_k flops. β ≥ 0. Stable for β‖k‖² ≤ 2: normalise the keys. With a zero
/// key the state decays and nothing is written. The rule has a chunkwise form for one decay per
/// token. Throws std::invalid_argument when a size does not fit. Yang, Kautz, Hatamizadeh 2024,
/// arXiv 2412.06464, section 3; Kimi Team 2025, arXiv 2510.26692, section 3.
template <class S, int Dk = Dynamic, int Dv = Dk,
          template <int, int> class Inputs = KeyValueBetaDecay>
class GatedDeltaRule : public MatrixRule<GatedDeltaRule<S, Dk, Dv, Inputs>, S, Inputs<Dk, Dv>> {
  using Base = MatrixRule<GatedDeltaRule<S, Dk, Dv, Inputs>, S, Inputs<Dk, Dv>>;

 public:
  using Base::Base;
  using typename Base::OwnedState, typename Base::Signature;
  static constexpr std::string_view name = "GatedDeltaRule";
  /// True if α is one number, not one per key row.
  static constexpr bool one_decay = detail::one_decay<Signature, S>;
  static constexpr auto decay_kind =
      one_decay ? detail::DecayKind::scalar : detail::DecayKind::per_channel;
  static constexpr bool has_delta_term = true, kernel_backward = true, plain_coefficients = true;
  static constexpr bool key_bounds_strength = true;

  template <class T> auto cast() const {
    return GatedDeltaRule<T, Dk, Dv, Inputs>(Base::signature().sizes());
  }

  void write(OwnedState& s, const WriteToken<GatedDeltaRule>& t) const {
    detail::apply_decay(s.W, t.decay);
    scratch<S, Dv>(Base::dv(), [&](auto& update) FASTWEIGHTS_INLINE_LAMBDA {
      update.noalias() = s.W * t.key;
      update = t.beta * (t.value - update);
      s.W.noalias() += update * t.key.transpose();
    });
  }

  /// The kernels' coefficients of a token.
  template <class StateLike>
  detail::TokenCoefficients<S> coefficients(StateLike&, const WriteToken<GatedDeltaRule>& t,
                                            const ReadToken<GatedDeltaRule>&) const {
    detail::TokenCoefficients<S> c;
    if constexpr (!detail::is_per_entry<decltype(t.beta)>) c.beta = t.beta;
    if constexpr (one_decay) c.decay = t.decay;
    return c;
  }
};

}  // namespace fw
