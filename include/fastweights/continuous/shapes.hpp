#pragma once

#include <fastweights/continuous/basis.hpp>

/// \file
/// The shapes of a density with a mean μ and a variance parameter v, and their exact integrals
///
///     r_n = E_p[ψ_n] = ∫ p(t) ψ_n(t) dt
///
/// with the functions of a basis, with derivatives by μ and v. On Domain::unit, p is truncated to
/// [0, 1] and divided by its mass there.

namespace fw::inline FASTWEIGHTS_ABI {

namespace detail {

/// An integral, or a sum of integrals, and its derivatives by the density's mean and variance.
template <class S> struct Integral { S value = S(0), dmean = S(0), dvariance = S(0); };

// J/Z, the normalised integral of a truncated density with mass Z.
template <class S> Integral<S> normalised(const Integral<S>& j, const Integral<S>& z) {
  const S value = j.value / z.value;
  return {value, (j.dmean - value * z.dmean) / z.value,
          (j.dvariance - value * z.dvariance) / z.value};
}

// Σ_n dr_n r_n and its derivatives, from the shape's integral of each function.
template <class Shape, class Basis, class S, class Dr>
Integral<S> weighted_integrals(const Basis& basis, Domain domain, const S& mean, const S& variance,
                               const Dr& dr) {
  Integral<S> sum;
  const Integral<S> mass = Shape::mass(mean, variance, domain);
  for (Index n = 0; n < basis.size(); ++n) {
    const Integral<S> r = normalised(Shape::integral(basis, n, mean, variance, domain), mass);
    sum.value += dr[n] * r.value;
    sum.dmean += dr[n] * r.dmean;
    sum.dvariance += dr[n] * r.dvariance;
  }
  return sum;
}

template <class Shape, class Basis, class S, class R>
void add_integrals(const Basis& basis, Domain domain, const S& weight, const S& mean,
                   const S& variance, R& r) {
  const Integral<S> mass = Shape::mass(mean, variance, domain);
  for (Index n = 0; n < basis.size(); ++n)
    r[n] += weight * Shape::integral(basis, n, mean, variance, domain).value / mass.value;
}

}  // namespace detail

/// p(t) = N(t; μ, v): continuous softmax. On Domain::line with a Gaussian basis
/// r_n = N(μ; μ_n, v + σ_n²).
struct GaussianShape {
  /// ∫ p ψ_n and its derivatives, before the division by the mass.
  template <class Basis, class S>
  static detail::Integral<S> integral(const Basis& basis, Index n, const S& mean, const S& variance,
                                      Domain domain) {
    return derived(basis.normal_moments(n, mean, variance, domain), variance);
  }
  /// The mass of p on the domain, 1 on the whole line, and its derivatives.
  template <class S>
  static detail::Integral<S> mass(const S& mean, const S& variance, Domain domain) {
    if (domain == Domain::line) return {S(1)};
    return derived(detail::normal_moments(mean, variance, mean, S(0), S(1)), variance);
  }
  /// t ← the mass left of t on the whole line, for every entry. `buffer` has the size of t.
  template <class S, class T, class Buffer>
  static void cdf(const S& mean, const S& variance, T& t, Buffer& buffer) {
    using std::sqrt;
    t = (t.array() - mean) * S(S(1) / sqrt(variance));
    detail::normal_cdf_in_place(t, buffer);
  }

  /// r += weight · E_p[ψ]
  template <class Basis, class S, class R>
  static void add(const Basis& basis, Domain domain, const S& weight, const S& mean,
                  const S& variance, R& r) {
    detail::add_integrals<GaussianShape>(basis, domain, weight, mean, variance, r);
  }
  /// Integrals of Gaussians on the whole line, whose integrals have a closed form.
  template <class S, class R>
  static void add(const GaussianBasis<S>& basis, Domain domain, const S& weight, const S& mean,
                  const S& variance, R& r) {
    if (domain == Domain::unit)
      return detail::add_integrals<GaussianShape>(basis, domain, weight, mean, variance, r);
    const auto total = basis.variances() + variance;
    r.array() += weight * S(0.39894228040143267794) *
                 ((basis.means() - mean).square() / total * S(-0.5)).exp() * total.rsqrt();
  }

  /// Σ_n dr_n r_n and its derivatives.
  template <class Basis, class S, class Dr>
  static detail::Integral<S> sums(const Basis& basis, Domain domain, const S& mean,
                                  const S& variance, const Dr& dr) {
    return detail::weighted_integrals<GaussianShape>(basis, domain, mean, variance, dr);
  }
  /// Σ_n dr_n r_n and its derivatives.
  template <class S, class Dr>
  static detail::Integral<S> sums(const GaussianBasis<S>& basis, Domain domain, const S& mean,
                                  const S& variance, const Dr& dr) {
    if (domain == Domain::unit)
      return detail::weighted_integrals<GaussianShape>(basis, domain, mean, variance, dr);
    const auto total = basis.variances() + variance;
    const auto slope = (basis.means() - mean) / total;  // ∂ ln r / ∂μ
    const auto weighted = dr.array() * S(0.39894228040143267794) *
                          ((basis.means() - mean) * slope * S(-0.5)).exp() * total.rsqrt();
    return {weighted.sum(), (weighted * slope).sum(),
            S(0.5) * (weighted * (slope.square() - total.inverse())).sum()};
  }

 private:
  // From moments of p·f about μ: ∂p/∂μ = p (t−μ)/v, ∂p/∂v = p ((t−μ)² − v)/2v².
  template <class S>
  static detail::Integral<S> derived(const detail::Moments<S>& m, const S& variance) {
    return {m.zeroth, m.first / variance,
            (m.second - variance * m.zeroth) / (S(2) * variance * variance)};
  }
};

/// p(t) = [a² − (t−μ)²]₊ / 2v with a = (3v/2)^⅓: continuous sparsemax, zero outside μ ± a.
/// Martins et al. 2020, arXiv 2006.07214, section 3.
struct ParabolaShape {
  /// ∫ p ψ_n and its derivatives, before the division by the mass.
  template <class Basis, class S>
  static detail::Integral<S> integral(const Basis& basis, Index n, const S& mean, const S& variance,
                                      Domain domain) {
    const auto [lo, hi] = support(mean, variance, domain);
    return derived(basis.moments(n, mean, lo, hi), variance);
  }
  /// The mass of p on the domain, 1 on the whole line, and its derivatives.
  template <class S>
  static detail::Integral<S> mass(const S& mean, const S& variance, Domain domain) {
    if (domain == Domain::line) return {S(1)};
    const auto [lo, hi] = support(mean, variance, domain);
    return derived(detail::uniform_moments(mean, lo, hi), variance);
  }
  /// Replaces every t by the mass of p on the left of it, on the whole line.
  template <class S, class T, class Buffer>
  static void cdf(const S& mean, const S& variance, T& t, Buffer&) {
    const S a = half_width(variance);
    t = t.unaryExpr([&](const S& each) {
      const S u = detail::larger(S(-1), detail::smaller(S(1), S((each - mean) / a)));
      return S(S(0.5) + (S(3) * u - u * u * u) * S(0.25));
    });
  }

  /// r += weight · E_p[ψ].
  template <class Basis, class S, class R>
  static void add(const Basis& basis, Domain domain, const S& weight, const S& mean,
                  const S& variance, R& r) {
    detail::add_integrals<ParabolaShape>(basis, domain, weight, mean, variance, r);
  }
  /// Σ_n dr_n r_n and its derivatives.
  template <class Basis, class S, class Dr>
  static detail::Integral<S> sums(const Basis& basis, Domain domain, const S& mean,
                                  const S& variance, const Dr& dr) {
    return detail::weighted_integrals<ParabolaShape>(basis, domain, mean, variance, dr);
  }

 private:
  template <class S> static S half_width(const S& variance) {
    using std::pow;
    return pow(S(S(1.5) * variance), S(1.0 / 3.0));
  }
  template <class S>
  static std::array<S, 2> support(const S& mean, const S& variance, Domain domain) {
    const S a = half_width(variance);
    if (domain == Domain::line) return {mean - a, mean + a};
    return {detail::larger(S(0), S(mean - a)), detail::smaller(S(1), S(mean + a))};
  }
  // From moments of f about μ over the support of p: ∂p/∂μ = (t−μ)/v, ∂p/∂v = (t−μ)²/2v² − a²/6v².
  // p is 0 at the ends of its support, so that these need no derivative.
  template <class S>
  static detail::Integral<S> derived(const detail::Moments<S>& m, const S& variance) {
    const S a = half_width(variance), v = variance;
    return {(a * a * m.zeroth - m.second) / (S(2) * v), m.first / v,
            m.second / (S(2) * v * v) - a * a * m.zeroth / (S(6) * v * v)};
  }
};

}  // namespace fw
