#pragma once

#include <fastweights/core/decay_signatures.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/kernels/backward/forms.hpp>
#include <fastweights/memories/rules/matrix_rule.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Write (k, v, a, b): a removal key a and a replacement key b. Read q.
template <int Dk, int Dv> struct KeyValueRemoval : QueryOutput<Dk, Dv> {
  template <class C> struct Write {
    vec<C, Dk> key;
    vec<C, Dv> value;
    vec<C, Dk> removal;      ///< a, d_k rows
    vec<C, Dk> replacement;  ///< b, d_k rows
    static constexpr auto names = fw::names("key", "value", "removal", "replacement");
    static constexpr auto roles = fw::roles(Role::key, Role::value, Role::key, Role::key);
  };
  template <int NewDk> using with_keys_of = KeyValueRemoval<NewDk, Dv>;

  Write<Extents> write() const {
    return {{this->dk, 1}, {this->dv, 1}, {this->dk, 1}, {this->dk, 1}};
  }
};

/// Writes with one decay α per key row.
template <int Dk, int Dv> struct KeyValueRemovalVectorDecay : QueryOutput<Dk, Dv> {
  template <class C> struct Write {
    vec<C, Dk> key;
    vec<C, Dv> value;
    vec<C, Dk> removal;      ///< a, d_k rows
    vec<C, Dk> replacement;  ///< b, d_k rows
    vec<C, Dk> decay;
    static constexpr auto names = fw::names("key", "value", "removal", "replacement", "decay");
    static constexpr auto roles =
        fw::roles(Role::key, Role::value, Role::key, Role::key, Role::decay);
  };
  template <int NewDk> using with_keys_of = KeyValueRemovalVectorDecay<NewDk, Dv>;

  Write<Extents> write() const {
    return {{this->dk, 1}, {this->dv, 1}, {this->dk, 1}, {this->dk, 1}, {this->dk, 1}};
  }
};

//| `LowRankRule` | W = W diag(α) + (W a) bᵀ + v kᵀ, as in RWKV-7 and IPLR | y = W q | 9 d_v d_k
//|   | yes | Peng et al. 2025, 2503.14456
/// A transition that is diagonal plus low rank: W decays, what it has under a is moved to b, and v
/// is added under k.
///
///     W_t = W_{t−1} diag(α_t) + (W_{t−1} a_t) b_tᵀ + v_t k_tᵀ     y_t = W_t q_t
///
/// With one decay per key row (`KeyValueRemovalVectorDecay`, the default) it is the recurrence of
/// RWKV-7, where a = −κ̂ and b = κ̂ ⊙ η; without (`KeyValueRemoval`, α = 1) it is IPLR, identity
/// plus low rank. a = −β k, b = k and v times β give the delta rule; a = 0 or b = 0 gated linear
/// attention.
///
/// Shapes: W d_v×d_k, k, q, a, b and α d_k, v and y d_v. Cost per token: 9 d_v d_k flops. Stable if
/// diag(α) + a bᵀ does not grow, as for a = −β α ⊙ k, b = k, β‖k‖² ≤ 2; the rule cannot tell from
/// one token. Throws std::invalid_argument when a size does not fit. Peng et al. 2025, arXiv
/// 2503.14456; IPLR as in flash-linear-attention.
template <class S, int Dk = Dynamic, int Dv = Dk,
          template <int, int> class Inputs = KeyValueRemovalVectorDecay>
class LowRankRule : public MatrixRule<LowRankRule<S, Dk, Dv, Inputs>, S, Inputs<Dk, Dv>> {
  using Base = MatrixRule<LowRankRule<S, Dk, Dv, Inputs>, S, Inputs<Dk, Dv>>;

 public:
  using Base::Base;
  using typename Base::OwnedState, typename Base::Signature;
  static constexpr std::string_view name = "LowRankRule";
  /// True if W decays.
  static constexpr bool has_decay = !std::is_same_v<Signature, KeyValueRemoval<Dk, Dv>>;
  static constexpr auto decay_kind =
      has_decay ? detail::DecayKind::per_channel : detail::DecayKind::none;
  static constexpr bool has_delta_term = true, lookup_before_decay = true;
  static constexpr bool kernel_backward = true;
  static constexpr auto products = detail::Products::removal;
  static constexpr Index corrections = 2;

  template <class T> auto cast() const {
    return LowRankRule<T, Dk, Dv, Inputs>(Base::signature().sizes());
  }

  void write(OwnedState& s, const WriteToken<LowRankRule>& t) const {
    scratch<S, Dv>(dv(), [&](auto& removed) FASTWEIGHTS_INLINE_LAMBDA {
      removed.noalias() = s.W * t.removal;
      if constexpr (requires { t.decay; }) detail::apply_decay(s.W, t.decay);
      s.W.noalias() += removed * t.replacement.transpose();
      s.W.noalias() += t.value * t.key.transpose();
    });
  }

  /// The kernels' correction of a token.
  template <class StateLike>
  void correction(StateLike&, const WriteToken<LowRankRule>& t, const ReadToken<LowRankRule>&,
                  Index j, S*, detail::Correction<S>& c) const {
    if (j == 0) {  // W a bᵀ
      c.lookup = t.removal.data();
      c.key = c.bonus_key = t.replacement.data();
      c.coefficients.value_scale = S(0);
      c.coefficients.retrieved_scale = S(-1);
    } else {  // v kᵀ
      c.coefficients.retrieved_scale = S(0);
    }
  }
  void correction_vjp(const OwnedState&, const WriteToken<LowRankRule>&, Index j,
                      const detail::CorrectionGradient<S>& g, OwnedState&,
                      WriteGradToken<LowRankRule>& dt) const {
    detail::add_gradient(j == 0 ? dt.replacement : dt.key, g.key);
    detail::add_gradient(dt.removal, g.lookup);
    if (j == 1) detail::add_gradient(dt.value, g.value);
  }

 private:
  using Base::dv;
};

}  // namespace fw
