#pragma once

#include <fastweights/core/signatures.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/kernels/backward/forms.hpp>
#include <fastweights/memories/rules/correction.hpp>
#include <fastweights/memories/rules/matrix_rule.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Write (k, v, p, β, α): a key to write to and a key p to look up. Read q.
template <int Dk, int Dv> struct KeyValueLookupBetaDecay : QueryOutput<Dk, Dv> {
  template <class C> struct Write {
    vec<C, Dk> key;
    vec<C, Dv> value;
    vec<C, Dk> lookup;  ///< p, d_k rows
    num<C> beta;
    num<C> decay;
    static constexpr auto names = fw::names("key", "value", "lookup", "beta", "decay");
    static constexpr auto roles =
        fw::roles(Role::key, Role::value, Role::key, Role::strength, Role::decay);
  };
  template <int NewDk> using with_keys_of = KeyValueLookupBetaDecay<NewDk, Dv>;

  Write<Extents> write() const {
    return {{this->dk, 1}, {this->dv, 1}, {this->dk, 1}, {1, 1}, {1, 1}};
  }
};

//| `Comba` | W = α W + β (v − W p) kᵀ | y = W q | 7 d_v d_k | yes | Hu et al. 2025, 2506.02475
/// Comba: a delta rule whose look-up key p differs from the write key and reads the state before
/// its decay.
///
///     u_t = β_t (v_t − W_{t−1} p_t)     W_t = α_t W_{t−1} + u_t k_tᵀ     y_t = W_t q_t
///
/// With p = α k it is the gated delta rule, with p = 0 gated linear attention.
///
/// Shapes: W d_v×d_k, k, p and q d_k, v and y d_v, β and α 1. Cost per token: 7 d_v d_k flops. β is
/// in [0, 2]. Stable if p is a multiple of k, as in the source, and 0 ≤ β k·p ≤ 2 α. A zero key
/// writes nothing. Throws std::invalid_argument when a size does not fit. Hu et al. 2025, arXiv
/// 2506.02475.
template <class S, int Dk = Dynamic, int Dv = Dk>
class Comba : public MatrixRule<Comba<S, Dk, Dv>, S, KeyValueLookupBetaDecay<Dk, Dv>> {
  using Base = MatrixRule<Comba<S, Dk, Dv>, S, KeyValueLookupBetaDecay<Dk, Dv>>;

 public:
  using Base::Base;
  using typename Base::OwnedState, typename Base::Signature;
  static constexpr std::string_view name = "Comba";
  static constexpr auto decay_kind = detail::DecayKind::scalar;
  static constexpr bool has_delta_term = true, lookup_before_decay = true;
  static constexpr bool kernel_backward = true;

  template <class T> auto cast() const { return Comba<T, Dk, Dv>(Base::signature().sizes()); }

  void write(OwnedState& s, const WriteToken<Comba>& t) const {
    detail::correct<Dv>(s.W, t.lookup, t.value, t.beta, t.decay, t.key);
  }

  /// The kernels' correction of a token.
  template <class StateLike>
  void correction(StateLike&, const WriteToken<Comba>& t, const ReadToken<Comba>&, Index, S*,
                  detail::Correction<S>& c) const {
    c.lookup = t.lookup.data();
    c.coefficients.beta = t.beta;
    c.coefficients.decay = t.decay;
  }
  void correction_vjp(const OwnedState&, const WriteToken<Comba>&, Index,
                      const detail::CorrectionGradient<S>& g, OwnedState&,
                      WriteGradToken<Comba>& dt) const {
    detail::add_gradient(dt.key, g.key);
    detail::add_gradient(dt.lookup, g.lookup);
    detail::add_gradient(dt.value, g.value);
    detail::add_strength_gradient(dt.beta, g);
  }
};

}  // namespace fw
