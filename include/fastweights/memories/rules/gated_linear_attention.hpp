#pragma once

#include <fastweights/core/decay_signatures.hpp>
#include <fastweights/kernels/backward/forms.hpp>
#include <fastweights/math/decay.hpp>
#include <fastweights/memories/rules/matrix_rule.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

//| `GatedLinearAttention` | W = W diag(α) + v kᵀ | y = W q | 5 d_v d_k | yes | Yang et al.
//|   2023, 2312.06635
//| … with `KeyValueDecay` | one α per token, as in Mamba-2 | y = W q | 5 d_v d_k | yes | Dao &
//|   Gu 2024, 2405.21060
/// Gated linear attention: the sum rule with an input decay for every token.
///
///     W_t = W_{t−1} diag(α_t) + v_t k_tᵀ      y_t = W_t q_t
///
/// α in (0, 1] is one decay per key row (`KeyValueVectorDecay`, the default) or one per token
/// (`KeyValueDecay`: simple gated linear attention, the recurrence of Mamba-2). α = 1 is linear
/// attention. A constant α is retention, see HebbianMemory.
///
/// Shapes: W d_v×d_k, k and q d_k (feature-mapped already), v and y d_v, α d_k or 1. Cost per
/// token: 5 d_v d_k flops. With a zero key the state decays and nothing is written. The rule has a
/// chunkwise form for one decay per token.
/// Throws std::invalid_argument when a size does not fit.
/// Yang, Wang, Shen, Panda, Kim 2023, arXiv 2312.06635, section 4; Dao & Gu 2024, arXiv 2405.21060;
/// retention: Sun et al. 2023, arXiv 2307.08621, eq. 6.
template <class S, int Dk = Dynamic, int Dv = Dk,
          template <int, int> class Inputs = KeyValueVectorDecay>
class GatedLinearAttention : public MatrixRule<GatedLinearAttention<S, Dk, Dv, Inputs>, S,
                                               Inputs<Dk, Dv>, detail::SumSegment<S, Dk, Dv>> {
  using Base = MatrixRule<GatedLinearAttention<S, Dk, Dv, Inputs>, S, Inputs<Dk, Dv>,
                          detail::SumSegment<S, Dk, Dv>>;

 public:
  using Base::Base;
  using typename Base::OwnedState, typename Base::Signature;
  static constexpr std::string_view name = "GatedLinearAttention";
  /// True if α is one number, not one per key row.
  static constexpr bool one_decay = detail::one_decay<Signature, S>;
  static constexpr auto decay_kind =
      one_decay ? detail::DecayKind::scalar : detail::DecayKind::per_channel;
  static constexpr bool has_delta_term = false, kernel_backward = true, plain_coefficients = true;

  template <class T> auto cast() const {
    return GatedLinearAttention<T, Dk, Dv, Inputs>(Base::signature().sizes());
  }

  void write(OwnedState& s, const WriteToken<GatedLinearAttention>& t) const {
    detail::apply_decay(s.W, t.decay);
    s.W.noalias() += t.value * t.key.transpose();
  }

  /// The kernels' coefficients of a token.
  template <class StateLike>
  detail::TokenCoefficients<S> coefficients(StateLike&, const WriteToken<GatedLinearAttention>& t,
                                            const ReadToken<GatedLinearAttention>&) const {
    detail::TokenCoefficients<S> c;
    if constexpr (one_decay) c.decay = t.decay;
    return c;
  }
};

}  // namespace fw
