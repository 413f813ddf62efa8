#pragma once

#include <cmath>
#include <fastweights/core/decay_signatures.hpp>
#include <fastweights/math/activations.hpp>
#include <fastweights/memories/rules/correction.hpp>

/// \file
/// Inner losses of memories that learn at test time: functions of the error e = W k − v. A loss is
/// a policy of MirasMemory with the inputs of a token, the gradient g of the loss with respect to
/// e, and the vector-Jacobian product of g.
///
/// | loss | g | memory |
/// |---|---|---|
/// | `SquaredLoss` | e | the delta rule |
/// | `HuberLoss` | e if ‖e‖ ≤ δ, else δ e/‖e‖ | Yaad |
/// | `CubicLoss` | 3 tanh(a e) (e² + ε), entrywise | Moneta |
///
/// Behrouz, Razaviyayn, Zhong, Mirrokni 2025, arXiv 2504.13173, section 5.

namespace fw::inline FASTWEIGHTS_ABI {

/// Write (k, v, β, α, δ): as KeyValueBetaDecay, with the size δ of an error that is an outlier.
template <int Dk, int Dv> struct KeyValueBetaDecayThreshold : QueryOutput<Dk, Dv> {
  template <class C> struct Write {
    vec<C, Dk> key;
    vec<C, Dv> value;
    num<C> beta;
    num<C> decay;
    num<C> threshold;  ///< δ
    static constexpr auto names = fw::names("key", "value", "beta", "decay", "threshold");
    static constexpr auto roles =
        fw::roles(Role::key, Role::value, Role::strength, Role::decay, Role::strength);
  };
  template <int NewDk> using with_keys_of = KeyValueBetaDecayThreshold<NewDk, Dv>;

  Write<Extents> write() const { return {{this->dk, 1}, {this->dv, 1}, {1, 1}, {1, 1}, {1, 1}}; }
};

/// ½‖e‖².
struct SquaredLoss {
  template <int Dk, int Dv> using Signature = KeyValueBetaDecay<Dk, Dv>;

  /// Replaces e by g.
  template <class T, class E> void gradient(const T&, E&) const {}
  /// Replaces the gradient of g by that of e. Adds to the gradients of the token.
  template <class T, class E, class D, class DT>
  void gradient_vjp(const T&, const E&, D&, DT&) const {}
};

/// ½‖e‖² for ‖e‖ ≤ δ, else δ‖e‖ − ½δ²: an outlier counts no more than an error of length δ.
struct HuberLoss {
  template <int Dk, int Dv> using Signature = KeyValueBetaDecayThreshold<Dk, Dv>;

  /// Replaces e by g.
  template <class T, class E> void gradient(const T& t, E& e) const {
    const auto squares = detail::product_sum(e, e);
    using std::sqrt;
    if (outlier(squares, t.threshold)) e *= t.threshold / sqrt(squares);
  }
  /// Replaces the gradient of g by that of e. Adds to the gradients of the token.
  template <class T, class E, class D, class DT>
  void gradient_vjp(const T& t, const E& e, D& d, DT& dt) const {
    using S = typename E::Scalar;
    const S squares = detail::product_sum(e, e);
    if (!outlier(squares, t.threshold)) return;
    using std::sqrt;
    const S length = sqrt(squares), along = detail::product_sum(e, d) / length;
    dt.threshold += along;
    d = (t.threshold / length) * (d - (along / length) * e);
  }

 private:
  // Compares the real part, so that a complex step takes the branch of the real number.
  template <class S> static bool outlier(const S& squares, const S& threshold) {
    using std::sqrt;
    return sqrt(detail::real_part(squares)) > detail::real_part(threshold);
  }
};

/// Σ|e|³ with a smooth gradient: the sign of e is tanh(a e) and |e|² is e² + ε.
struct CubicLoss {
  double sharpness = 10;  ///< a
  double epsilon = 1e-6;

  template <int Dk, int Dv> using Signature = KeyValueBetaDecay<Dk, Dv>;

  /// Replaces e by g.
  template <class T, class E> void gradient(const T&, E& e) const {
    using S = typename E::Scalar;
    e.array() = S(3) * sign(e) * (e.array().square() + S(epsilon));
  }
  /// Replaces the gradient of g by that of e. Adds to the gradients of the token.
  template <class T, class E, class D, class DT>
  void gradient_vjp(const T&, const E& e, D& d, DT&) const {
    using S = typename E::Scalar;
    d.array() *= S(3) * (S(2) * sign(e) * e.array() + S(sharpness) * (S(1) - sign(e).square()) *
                                                          (e.array().square() + S(epsilon)));
  }

 private:
  template <class E> auto sign(const E& e) const {
    return (typename E::Scalar(sharpness) * e.array()).tanh();
  }
};

}  // namespace fw
