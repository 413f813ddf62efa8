#pragma once

#include <fastweights/core/signatures.hpp>
#include <fastweights/core/stability.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/kernels/backward/forms.hpp>
#include <fastweights/memories/rules/correction.hpp>
#include <fastweights/memories/rules/matrix_rule.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Write (k, v, α, b, w): a decay and an erase strength per key row, a write strength per value
/// row. Read q.
template <int Dk, int Dv> struct KeyValueDecayEraseWrite : QueryOutput<Dk, Dv> {
  template <class C> struct Write {
    vec<C, Dk> key;
    vec<C, Dv> value;
    vec<C, Dk> decay;
    vec<C, Dk> erase;  ///< b, one per key row
    vec<C, Dv> write;  ///< w, one per value row
    static constexpr auto names = fw::names("key", "value", "decay", "erase", "write");
    static constexpr auto roles =
        fw::roles(Role::key, Role::value, Role::decay, Role::strength, Role::strength);
  };
  template <int NewDk> using with_keys_of = KeyValueDecayEraseWrite<NewDk, Dv>;

  Write<Extents> write() const {
    return {{this->dk, 1}, {this->dv, 1}, {this->dk, 1}, {this->dk, 1}, {this->dv, 1}};
  }
};

//| `GatedDeltaRule2` | W = W diag(α), then W += (w ⊙ v − W (b ⊙ k)) kᵀ | y = W q | 7 d_v d_k |
//|   yes | Hatamizadeh et al. 2026, 2605.22791
/// The second gated delta rule: what is erased and what is written have strengths of their own.
///
///     W̄_t = W_{t−1} diag(α_t)     W_t = W̄_t + (w_t ⊙ v_t − W̄_t (b_t ⊙ k_t)) k_tᵀ     y_t = W_t q_t
///
/// With b = β and w = β it is Kimi delta attention, GatedDeltaRule with KeyValueBetaVectorDecay.
///
/// Shapes: W d_v×d_k, k, q, α and b d_k, v, y and w d_v. Cost per token: 7 d_v d_k flops. b and w
/// are in [0, 2]. A token that is repeated is stable for Σ_i b_i k_i² ≤ 2, and any sequence of such
/// tokens if the b of a token are equal; different ones can grow W, by up to 1.5 in four tokens
/// with unit keys and b of 0 and 1 (found by random search). A zero key writes nothing. Throws
/// std::invalid_argument when a size does not fit. Hatamizadeh, Choi, Kautz 2026, arXiv
/// 2605.22791.
template <class S, int Dk = Dynamic, int Dv = Dk>
class GatedDeltaRule2
    : public MatrixRule<GatedDeltaRule2<S, Dk, Dv>, S, KeyValueDecayEraseWrite<Dk, Dv>> {
  using Base = MatrixRule<GatedDeltaRule2<S, Dk, Dv>, S, KeyValueDecayEraseWrite<Dk, Dv>>;

 public:
  using Base::Base;
  using typename Base::OwnedState, typename Base::Signature;
  static constexpr std::string_view name = "GatedDeltaRule2";
  static constexpr auto decay_kind = detail::DecayKind::per_channel;
  static constexpr bool has_delta_term = true, kernel_backward = true;
  static constexpr Index key_buffers = 1, value_buffers = 1;

  template <class T> auto cast() const {
    return GatedDeltaRule2<T, Dk, Dv>(Base::signature().sizes());
  }

  void write(OwnedState& s, const WriteToken<GatedDeltaRule2>& t) const {
    scratch<S, Dk>(dk(), [&](auto& lookup) FASTWEIGHTS_INLINE_LAMBDA {
      lookup = t.decay.cwiseProduct(t.erase).cwiseProduct(t.key);
      detail::correct<Dv>(s.W, lookup, t.write.cwiseProduct(t.value), S(1), t.decay, t.key);
    });
  }
  Violation violation(const WriteToken<GatedDeltaRule2>& t) const {
    // Σ b k² as the squared norm of √b ⊙ k
    return delta_violation(1.0, t.erase.cwiseSqrt().cwiseProduct(t.key),
                           "the sum of erase times key squared");
  }

  /// The kernels' correction of a token.
  template <class StateLike>
  void correction(StateLike&, const WriteToken<GatedDeltaRule2>& t,
                  const ReadToken<GatedDeltaRule2>&, Index, S* buffer,
                  detail::Correction<S>& c) const {
    Eigen::Map<Eigen::Array<S, Dk, 1>> lookup(buffer, dk());
    Eigen::Map<Eigen::Array<S, Dv, 1>> value(buffer + dk(), dv());
    lookup = t.erase.array() * t.key.array();
    value = t.write.array() * t.value.array();
    c.lookup = lookup.data();
    c.value = value.data();
  }
  void correction_vjp(const OwnedState&, const WriteToken<GatedDeltaRule2>& t, Index,
                      const detail::CorrectionGradient<S>& g, OwnedState&,
                      WriteGradToken<GatedDeltaRule2>& dt) const {
    detail::add_gradient(dt.key, g.key);
    detail::add_gradient(dt.key, t.erase, g.lookup);
    detail::add_gradient(dt.erase, t.key, g.lookup);
    detail::add_gradient(dt.value, t.write, g.value);
    detail::add_gradient(dt.write, t.value, g.value);
  }

 private:
  using Base::dk, Base::dv;
};

}  // namespace fw
