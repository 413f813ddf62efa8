#pragma once

#include <cmath>
#include <fastweights/core/signatures.hpp>
#include <fastweights/kernels/backward/forms.hpp>
#include <fastweights/memories/rules/correction.hpp>
#include <fastweights/memories/rules/matrix_rule.hpp>
#include <type_traits>

namespace fw::inline FASTWEIGHTS_ABI {

namespace detail {

// Σ_n c_n (−x)^n with c_0 = first and c_n = ratio(n) c_{n−1}, to the last bit for |x| < 1/2.
template <class S, class Ratio> S alternating_series(const S& x, double first, const Ratio& ratio) {
  S term = S(first), sum = term;
  for (int n = 1; n < 20; ++n) {
    term *= -x * S(ratio(n));
    sum += term;
  }
  return sum;
}

// (1 − e^{−x}) / x
template <class S> S exact_flow(const S& x) {
  if constexpr (std::is_floating_point_v<S>) return x == 0 ? S(1) : -std::expm1(-x) / x;
  using std::exp;
  if (Eigen::numext::real(x) < 0.5)
    return alternating_series(x, 1, [](int n) { return 1.0 / (n + 1); });
  return (S(1) - exp(-x)) / x;
}
// Its derivative, ((1 + x) e^{−x} − 1) / x²
template <class S> S exact_flow_derivative(const S& x) {
  using std::exp;
  if (Eigen::numext::real(x) < 0.5)
    return alternating_series(x, -0.5, [](int n) { return double(n + 1) / (double(n) * (n + 2)); });
  return ((S(1) + x) * exp(-x) - S(1)) / (x * x);
}

}  // namespace detail

//| `Efla` | W += b (v − W k) kᵀ, b = (1 − e^{−β‖k‖²}) / ‖k‖²: stable for any key | y = W q | 6
//|   d_v d_k | yes | Lei et al. 2025, 2512.12602
/// Error-free linear attention: a delta rule whose strength is that of the exact flow of its
/// gradient, so it is stable for any key:
///
///     b_t = (1 − e^{−β_t ‖k_t‖²}) / ‖k_t‖²     W_t = W_{t−1} + b_t (v_t − W_{t−1} k_t) k_tᵀ
///     y_t = W_t q_t
///
/// Shapes: W d_v×d_k, k and q d_k, v and y d_v, β 1. Cost per token: 6 d_v d_k flops. β ≥ 0. A zero
/// key writes nothing. Throws std::invalid_argument when a size does not fit. Lei, Zhang, Poria
/// 2025, arXiv 2512.12602.
template <class S, int Dk = Dynamic, int Dv = Dk>
class Efla : public MatrixRule<Efla<S, Dk, Dv>, S, KeyValueBeta<Dk, Dv>> {
  using Base = MatrixRule<Efla<S, Dk, Dv>, S, KeyValueBeta<Dk, Dv>>;

 public:
  using Base::Base;
  using typename Base::OwnedState, typename Base::Signature;
  static constexpr std::string_view name = "Efla";
  static constexpr auto decay_kind = detail::DecayKind::none;
  static constexpr bool has_delta_term = true, kernel_backward = true;

  template <class T> auto cast() const { return Efla<T, Dk, Dv>(Base::signature().sizes()); }

  void write(OwnedState& s, const WriteToken<Efla>& t) const {
    detail::correct<Dv>(s.W, t.key, t.value, strength(t), S(1), t.key);
  }

  /// The kernels' correction of a token.
  template <class StateLike>
  void correction(StateLike&, const WriteToken<Efla>& t, const ReadToken<Efla>&, Index, S*,
                  detail::Correction<S>& c) const {
    c.coefficients.beta = strength(t);
  }
  /// With b = β φ(x), x = β‖k‖².
  void correction_vjp(const OwnedState&, const WriteToken<Efla>& t, Index,
                      const detail::CorrectionGradient<S>& g, OwnedState&,
                      WriteGradToken<Efla>& dt) const {
    detail::add_gradient(dt.key, g.key);
    detail::add_gradient(dt.key, g.lookup);
    detail::add_gradient(dt.value, g.value);
    if (g.update == nullptr) return;
    S db(0);
    detail::add_strength_gradient(db, g);
    const S square = detail::product_sum(t.key, t.key), x = t.beta * square;
    const S slope = detail::exact_flow_derivative(x);
    dt.beta += db * (detail::exact_flow(x) + x * slope);
    dt.key += (S(2) * db * t.beta * t.beta * slope) * t.key;
  }

 private:
  static S strength(const WriteToken<Efla>& t) {
    return t.beta * detail::exact_flow<S>(t.beta * detail::product_sum(t.key, t.key));
  }
};

}  // namespace fw
