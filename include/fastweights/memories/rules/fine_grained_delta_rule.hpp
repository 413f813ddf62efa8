#pragma once

#include <fastweights/core/decay_signatures.hpp>
#include <fastweights/kernels/backward/forms.hpp>
#include <fastweights/memories/rules/correction.hpp>
#include <fastweights/memories/rules/matrix_rule.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Write (k, v, β, α): a write strength and a decay per channel; keys and values have d channels.
/// Read q.
template <int D> struct ChannelBetaDecay : QueryOutput<D, D> {
  template <class C> struct Write {
    vec<C, D> key, value, beta, decay;
    static constexpr auto names = fw::names("key", "value", "beta", "decay");
    static constexpr auto roles = fw::roles(Role::key, Role::value, Role::strength, Role::decay);
  };
  template <int NewD> using with_keys_of = ChannelBetaDecay<NewD>;

  Write<Extents> write() const {
    return {{this->dk, 1}, {this->dk, 1}, {this->dk, 1}, {this->dk, 1}};
  }
};

//| `FineGrainedDeltaRule` | W = W diag(α), then W += (√β ⊙ v − W (√β ⊙ k)) (√β ⊙ k)ᵀ | y = W q
//|   | 7 d² | yes | Sun et al. 2026, 2604.19021
/// The fine-grained gated delta rule (FG²-GDN): Kimi delta attention with a write strength for
/// every channel, whose root scales keys and values.
///
///     k̃_t = √β_t ⊙ k_t     ṽ_t = √β_t ⊙ v_t     W̄_t = W_{t−1} diag(α_t)
///     W_t = W̄_t + (ṽ_t − W̄_t k̃_t) k̃_tᵀ     y_t = W_t q_t
///
/// With the same β in all channels it is GatedDeltaRule with KeyValueBetaVectorDecay.
///
/// Shapes: W d×d; k, v, β, α, q and y d. Cost per token: 7 d² flops. β ≥ 0; at 0, where √β has no
/// derivative, its gradient is given as 0. Stable for Σ_i β_i k_i² ≤ 2. A zero key writes nothing.
/// Throws std::invalid_argument when a size does not fit. Sun et al. 2026, arXiv 2604.19021; the
/// equation is that of secondary sources.
template <class S, int D = Dynamic>
class FineGrainedDeltaRule : public MatrixRule<FineGrainedDeltaRule<S, D>, S, ChannelBetaDecay<D>> {
  using Base = MatrixRule<FineGrainedDeltaRule<S, D>, S, ChannelBetaDecay<D>>;

 public:
  using typename Base::OwnedState, typename Base::Signature;
  static constexpr std::string_view name = "FineGrainedDeltaRule";
  static constexpr auto decay_kind = detail::DecayKind::per_channel;
  static constexpr bool has_delta_term = true, kernel_backward = true, key_bounds_strength = true;
  static constexpr Index key_buffers = 1, value_buffers = 1;

  explicit FineGrainedDeltaRule(Index d = D) : Base({d, d}) {}

  template <class T> auto cast() const { return FineGrainedDeltaRule<T, D>(Base::dk()); }

  void write(OwnedState& s, const WriteToken<FineGrainedDeltaRule>& t) const {
    scratch<S, D, 2>(Base::dk(), [&](auto& root, auto& key) FASTWEIGHTS_INLINE_LAMBDA {
      root = t.beta.cwiseSqrt();
      key = root.cwiseProduct(t.key);
      detail::correct<D>(s.W, t.decay.cwiseProduct(key), root.cwiseProduct(t.value), S(1), t.decay,
                         key);
    });
  }

  /// The kernels' correction of a token.
  template <class StateLike>
  void correction(StateLike&, const WriteToken<FineGrainedDeltaRule>& t,
                  const ReadToken<FineGrainedDeltaRule>&, Index, S* buffer,
                  detail::Correction<S>& c) const {
    Eigen::Map<Eigen::Array<S, D, 1>> key(buffer, Base::dk()),
        value(buffer + Base::dk(), Base::dk());
    value = t.beta.array().sqrt();
    key = value * t.key.array();
    value *= t.value.array();
    c.lookup = c.key = c.bonus_key = key.data();
    c.value = value.data();
  }
  void correction_vjp(const OwnedState&, const WriteToken<FineGrainedDeltaRule>& t, Index,
                      const detail::CorrectionGradient<S>& g, OwnedState&,
                      WriteGradToken<FineGrainedDeltaRule>& dt) const {
    scratch<S, D>(Base::dk(), [&](auto& root) {
      root = t.beta.cwiseSqrt();
      const auto add = [&](auto& dx, const auto& x, const S* gradient) {
        if (gradient == nullptr) return;
        for (Index i = 0; i < x.size(); ++i) {
          dx[i] += root[i] * gradient[i];
          if (root[i] != S(0)) dt.beta[i] += S(0.5) * x[i] / root[i] * gradient[i];
        }
      };
      add(dt.key, t.key, g.key);
      add(dt.key, t.key, g.lookup);
      add(dt.value, t.value, g.value);
    });
  }
};

}  // namespace fw
