#pragma once

#include <fastweights/core/signatures.hpp>
#include <fastweights/kernels/backward/forms.hpp>
#include <fastweights/memories/rules/correction.hpp>
#include <fastweights/memories/rules/matrix_rule.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Write (k, v, p, β, λ, α): a key, and a second vector p of which λ p is added to the key that is
/// looked up. Read q.
template <int Dk, int Dv> struct KeyValueProbe : QueryOutput<Dk, Dv> {
  template <class C> struct Write {
    vec<C, Dk> key;
    vec<C, Dv> value;
    vec<C, Dk> probe;  ///< p, d_k rows
    num<C> beta;
    num<C> mix;  ///< λ
    num<C> decay;
    static constexpr auto names = fw::names("key", "value", "probe", "beta", "mix", "decay");
    static constexpr auto roles =
        fw::roles(Role::key, Role::value, Role::key, Role::strength, Role::strength, Role::decay);
  };
  template <int NewDk> using with_keys_of = KeyValueProbe<NewDk, Dv>;

  Write<Extents> write() const {
    return {{this->dk, 1}, {this->dv, 1}, {this->dk, 1}, {1, 1}, {1, 1}, {1, 1}};
  }
};

//| `QDelta` | W = α W, then W += β (v − W (k + λ p)) kᵀ, p the query | y = W q | 7 d_v d_k |
//|   yes | Park et al. 2026, 2606.08804
/// Q-Delta: a gated delta rule whose error is read at a mix of the key and the query.
///
///     W̄_t = α_t W_{t−1}     x_t = k_t + λ_t p_t     u_t = β_t (v_t − W̄_t x_t)
///     W_t = W̄_t + u_t k_tᵀ     y_t = W_t q_t
///
/// In the paper p is the query of the same token. With λ = 0 it is the gated delta rule, and with
/// another look-up key it is Comba.
///
/// Shapes: W d_v×d_k, k, p and q d_k, v and y d_v, β, λ and α 1. Cost per token: 7 d_v d_k flops.
/// β ≥ 0. Not stable for any query: a write multiplies by I − β x kᵀ. A zero key writes nothing.
/// Throws std::invalid_argument when a size does not fit. Park, Kim, Park 2026, arXiv 2606.08804,
/// eq. 17–20.
template <class S, int Dk = Dynamic, int Dv = Dk>
class QDelta : public MatrixRule<QDelta<S, Dk, Dv>, S, KeyValueProbe<Dk, Dv>> {
  using Base = MatrixRule<QDelta<S, Dk, Dv>, S, KeyValueProbe<Dk, Dv>>;

 public:
  using Base::Base;
  using typename Base::OwnedState, typename Base::Signature;
  static constexpr std::string_view name = "QDelta";
  static constexpr auto decay_kind = detail::DecayKind::scalar;
  static constexpr bool has_delta_term = true, kernel_backward = true;
  static constexpr Index key_buffers = 1, value_buffers = 0;

  template <class T> auto cast() const { return QDelta<T, Dk, Dv>(Base::signature().sizes()); }

  void write(OwnedState& s, const WriteToken<QDelta>& t) const {
    detail::correct<Dv>(s.W, (t.decay * (t.key + t.mix * t.probe)).eval(), t.value, t.beta, t.decay,
                        t.key);
  }

  /// The kernels' correction of a token.
  template <class StateLike>
  void correction(StateLike&, const WriteToken<QDelta>& t, const ReadToken<QDelta>&, Index,
                  S* buffer, detail::Correction<S>& c) const {
    Eigen::Map<Eigen::Matrix<S, Dk, 1>>(buffer, Base::dk()) = t.key + t.mix * t.probe;
    c.lookup = buffer;
    c.coefficients.beta = t.beta;
    c.coefficients.decay = t.decay;
  }
  void correction_vjp(const OwnedState&, const WriteToken<QDelta>& t, Index,
                      const detail::CorrectionGradient<S>& g, OwnedState&,
                      WriteGradToken<QDelta>& dt) const {
    detail::add_gradient(dt.key, g.key);
    detail::add_gradient(dt.value, g.value);
    detail::add_strength_gradient(dt.beta, g);
    if (g.lookup == nullptr) return;
    const Eigen::Map<const Eigen::Matrix<S, Dk, 1>> dlookup(g.lookup, Base::dk());
    dt.key += dlookup;
    dt.probe += t.mix * dlookup;
    dt.mix += detail::product_sum(t.probe, dlookup);
  }
};

}  // namespace fw
