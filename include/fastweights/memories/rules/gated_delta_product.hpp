#pragma once

#include <fastweights/core/signatures.hpp>
#include <fastweights/core/stability.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/kernels/backward/forms.hpp>
#include <fastweights/memories/rules/correction.hpp>
#include <fastweights/memories/rules/matrix_rule.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Write N times (k, v, β) and one decay α per token, read q. Keys, values and strengths have N
/// columns per token.
template <int Dk, int Dv, int N> struct KeyValueBetaProduct : QueryOutput<Dk, Dv> {
  template <class C> struct Write {
    mat<C, Dk, N> key;
    mat<C, Dv, N> value;
    mat<C, 1, N> beta;
    num<C> decay;
    static constexpr auto names = fw::names("key", "value", "beta", "decay");
    static constexpr auto roles = fw::roles(Role::key, Role::value, Role::strength, Role::decay);
  };
  template <int NewDk> using with_keys_of = KeyValueBetaProduct<NewDk, Dv, N>;

  Write<Extents> write() const { return {{this->dk, N}, {this->dv, N}, {1, N}, {1, 1}}; }
};

//| `GatedDeltaProduct` | W = α W, then N delta rules | y = W q | (4 N + 3) d_v d_k | yes |
//|   Siems et al. 2025, 2502.10297
/// The gated DeltaProduct: the state decays, then N delta rules write one after the other.
///
///     W_{t,0} = α_t W_{t−1}     u_{t,j} = β_{t,j} (v_{t,j} − W_{t,j−1} k_{t,j})
///     W_{t,j} = W_{t,j−1} + u_{t,j} k_{t,j}ᵀ     W_t = W_{t,N}     y_t = W_t q_t
///
/// A product of N reflections can rotate, which one cannot. N = 1 is the gated delta rule.
///
/// Shapes: W d_v×d_k, k d_k×N, v d_v×N, β 1×N, α 1, q d_k, y d_v. A sequence of T tokens has N T
/// columns of keys, values and strengths. Cost per token: (4 N + 3) d_v d_k flops. β ≥ 0.
/// Stable for β‖k‖² ≤ 2: normalise the keys. A zero key writes nothing. Throws
/// std::invalid_argument when a size does not fit. Siems et al. 2025, arXiv 2502.10297.
template <class S, int N = 2, int Dk = Dynamic, int Dv = Dk>
class GatedDeltaProduct
    : public MatrixRule<GatedDeltaProduct<S, N, Dk, Dv>, S, KeyValueBetaProduct<Dk, Dv, N>> {
  using Base = MatrixRule<GatedDeltaProduct<S, N, Dk, Dv>, S, KeyValueBetaProduct<Dk, Dv, N>>;

  static_assert(N > 0, "GatedDeltaProduct: N is the number of writes per token");

 public:
  using Base::Base;
  using typename Base::OwnedState, typename Base::Signature;
  static constexpr std::string_view name = "GatedDeltaProduct";
  static constexpr auto decay_kind = detail::DecayKind::scalar;
  static constexpr bool has_delta_term = true, kernel_backward = N <= detail::chunk_size;
  static constexpr Index corrections = N;

  template <class T> auto cast() const {
    return GatedDeltaProduct<T, N, Dk, Dv>(Base::signature().sizes());
  }

  void write(OwnedState& s, const WriteToken<GatedDeltaProduct>& t) const {
    detail::apply_decay(s.W, t.decay);
    for (Index j = 0; j < N; ++j)
      detail::correct<Dv>(s.W, t.key.col(j), t.value.col(j), t.beta(0, j), S(1), t.key.col(j));
  }
  static constexpr bool key_bounds_strength = true;

  /// The kernels' correction of a token.
  template <class StateLike>
  void correction(StateLike&, const WriteToken<GatedDeltaProduct>& t,
                  const ReadToken<GatedDeltaProduct>&, Index j, S*,
                  detail::Correction<S>& c) const {
    c.coefficients.beta = t.beta(0, j);
    if (j == 0) c.coefficients.decay = t.decay;
  }
  void correction_vjp(const OwnedState&, const WriteToken<GatedDeltaProduct>&, Index j,
                      const detail::CorrectionGradient<S>& g, OwnedState&,
                      WriteGradToken<GatedDeltaProduct>& dt) const {
    detail::add_gradient(dt.key.col(j), g.key);
    detail::add_gradient(dt.key.col(j), g.lookup);
    detail::add_gradient(dt.value.col(j), g.value);
    detail::add_strength_gradient(dt.beta(0, j), g);
  }
};

}  // namespace fw
