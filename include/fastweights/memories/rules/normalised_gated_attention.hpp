#pragma once

#include <fastweights/core/decay_signatures.hpp>
#include <fastweights/core/stability.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/kernels/rule.hpp>
#include <fastweights/memories/rules/correction.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

//| `NormalisedGatedAttention` | W = α W + v kᵀ, z = α z + k | y = W q / (z·q + ε) | 5 d_v d_k |
//|    | Gelada et al. 2025, 2507.04239
/// Gated linear attention that divides by the sum of its weights. The normaliser decays as W does.
///
///     W_t = α_t W_{t−1} + v_t k_tᵀ      z_t = α_t z_{t−1} + k_t
///     y_t = W_t q_t / (z_t·q_t + ε)
///
/// With SymmetricPower as the feature map it is power attention, with a gate. With KeyValueDecay
/// (the default) α is one decay per token, with KeyValueVectorDecay one per key row. With α = 1 it
/// is LinearAttention with AttentionNormaliser, whose compensated sums are for streams without any
/// decay: here W and z lose the same digits, so y stays a mean of values.
///
/// Shapes: W d_v×d_k, z, k and q d_k (feature-mapped already), v and y d_v, α 1 or d_k. Cost per
/// token: 5 d_v d_k flops. If z·q + ε is exactly 0, the output is 0; choose positive weights.
/// Throws std::invalid_argument when a size does not fit or ε is not finite. Gelada et
/// al. 2025, arXiv 2507.04239.
template <class S, int Dk = Dynamic, int Dv = Dk, template <int, int> class Inputs = KeyValueDecay>
class NormalisedGatedAttention {
 public:
  using Scalar = S;
  using Signature = Inputs<Dk, Dv>;
  static constexpr std::string_view name = "NormalisedGatedAttention";
  static constexpr auto decay_kind =
      detail::one_decay<Signature, S> ? detail::DecayKind::scalar : detail::DecayKind::per_channel;
  static constexpr bool has_delta_term = false;

  /// The state of z.
  template <class C> struct Normaliser {
    vec<C, Dk> sum;  ///< z
    static constexpr auto names = fw::names("sum");
  };
  template <class C> struct State {
    mat<C, Dv, Dk> W;
    Normaliser<C> normaliser;
    static constexpr auto names = fw::names("W", "normaliser");
  };
  using OwnedState = State<Owned<S>>;

  explicit NormalisedGatedAttention(Sizes<Dk, Dv> sizes = {}, S epsilon = S(1e-6))
      : signature_{{sizes.key_size, sizes.value_size}}, normaliser_{epsilon} {
    signature_.check(name);
    detail::check_finite(name, "epsilon", epsilon);
  }

  Signature signature() const { return signature_; }
  State<Extents> state_extents() const {
    return {{signature_.dv, signature_.dk}, {{signature_.dk, 1}}};
  }
  template <class T> auto cast() const {
    return NormalisedGatedAttention<T, Dk, Dv, Inputs>(signature_.sizes(), T(normaliser_.epsilon));
  }

  void write(OwnedState& s, const WriteToken<NormalisedGatedAttention>& t) const {
    detail::apply_decay(s.W, t.decay);
    s.W.noalias() += t.value * t.key.transpose();
    s.normaliser.sum = detail::decayed(t.decay, s.normaliser.sum) + t.key;
  }
  void read(const OwnedState& s, const ReadToken<NormalisedGatedAttention>& t,
            OutToken<NormalisedGatedAttention> y) const {
    detail::normalised_read(normaliser_, s, t.query, y.output);
  }
  void write_vjp(const OwnedState& s, const WriteToken<NormalisedGatedAttention>& t, OwnedState& ds,
                 WriteGradToken<NormalisedGatedAttention> dt) const {
    auto& dz = ds.normaliser.sum;
    dt.value.noalias() += ds.W * t.key;
    dt.key.noalias() += ds.W.transpose() * t.value;
    dt.key += dz;
    detail::apply_decay_vjp(s.W, t.decay, ds.W, dt.decay);
    detail::add_scale_vjp(s.normaliser.sum, dz, dt.decay);
    dz = detail::decayed(t.decay, dz);
  }
  void read_vjp(const OwnedState& s, const ReadToken<NormalisedGatedAttention>& t,
                const OutGradToken<NormalisedGatedAttention>& dy, OwnedState& ds,
                ReadGradToken<NormalisedGatedAttention> dt) const {
    detail::normalised_read_vjp(normaliser_, s, t.query, dy.output, ds, dt.query);
  }

  /// The kernels' coefficients of a token. Updates the normaliser.
  template <class StateLike>
  detail::TokenCoefficients<S> coefficients(
      StateLike& s, const WriteToken<NormalisedGatedAttention>& t,
      const ReadToken<NormalisedGatedAttention>& query) const {
    s.normaliser.sum = detail::decayed(t.decay, s.normaliser.sum) + t.key;
    detail::TokenCoefficients<S> c;
    c.read_scale = read_scale(s, query);
    if constexpr (decay_kind == detail::DecayKind::scalar) c.decay = t.decay;
    return c;
  }
  template <class StateLike>
  S read_scale(const StateLike& s, const ReadToken<NormalisedGatedAttention>& query) const {
    return normaliser_.inverse(s.normaliser, query.query);
  }

 private:
  Signature signature_;
  AttentionNormaliser<S> normaliser_;
};

}  // namespace fw
