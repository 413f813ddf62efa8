#pragma once

#include <array>
#include <fastweights/math/activations.hpp>
#include <fastweights/math/normal.hpp>

/// \file
/// The integrals of the continuous memory: moments of a function about a centre,
/// ∫ (t − c)^k f(t) dt for k = 0, 1, 2.

namespace fw::inline FASTWEIGHTS_ABI::detail {

template <class S> struct Moments { S zeroth = S(0), first = S(0), second = S(0); };

template <class S> Moments<S> operator*(const S& factor, const Moments<S>& m) {
  return {factor * m.zeroth, factor * m.first, factor * m.second};
}

/// Gauss–Legendre quadrature on [−1, 1], exact for polynomials of degree 15.
struct GaussLegendre {
  static constexpr std::array<double, 4> nodes{0.18343464249564980494, 0.52553240991632898582,
                                               0.79666647741362673959, 0.96028985649753623168};
  static constexpr std::array<double, 4> weights{0.36268378337836198297, 0.31370664587788728734,
                                                 0.22238103445337447054, 0.10122853629037625915};

  /// Calls f(t, weight of t) for the 8 nodes of [lo, hi], in ascending order.
  template <class S, class F> static void visit(const S& lo, const S& hi, const F& f) {
    const S half = (hi - lo) * S(0.5), middle = (hi + lo) * S(0.5);
    for (std::size_t i = nodes.size(); i-- > 0;)
      f(S(middle - half * S(nodes[i])), S(half * S(weights[i])));
    for (std::size_t i = 0; i < nodes.size(); ++i)
      f(S(middle + half * S(nodes[i])), S(half * S(weights[i])));
  }
};

/// Moments of N(t; mean, variance) over [lo, hi]; zero where hi ≤ lo.
template <class S>
Moments<S> normal_moments(const S& mean, const S& variance, const S& centre, const S& lo,
                          const S& hi) {
  using std::sqrt;
  Moments<S> m;
  if (!(real_part(lo) < real_part(hi))) return m;
  const S s = sqrt(variance), d = mean - centre;
  const S a = (lo - mean) / s, b = (hi - mean) / s;
  if (real_part(b) - real_part(a) < 1) {
    // The closed form would subtract nearly equal numbers here.
    GaussLegendre::visit(a, b, [&](const S& z, const S& weight) {
      const S mass = weight * normal_density(z), t = d + s * z;
      m.zeroth += mass;
      m.first += mass * t;
      m.second += mass * t * t;
    });
    return m;
  }
  const S at_a = normal_density(a), at_b = normal_density(b);
  // In the right tail the complement is more accurate: it does not round to 1.
  m.zeroth =
      real_part(a) > 0 ? normal_cdf(S(-a)) - normal_cdf(S(-b)) : normal_cdf(b) - normal_cdf(a);
  const S first = s * (at_a - at_b);
  m.first = d * m.zeroth + first;
  m.second = d * d * m.zeroth + S(2) * d * first + variance * (m.zeroth + a * at_a - b * at_b);
  return m;
}

/// Moments of the constant 1 over [lo, hi]; zero where hi ≤ lo.
template <class S> Moments<S> uniform_moments(const S& centre, const S& lo, const S& hi) {
  if (!(real_part(lo) < real_part(hi))) return {};
  const S a = lo - centre, b = hi - centre;
  return {b - a, (b * b - a * a) * S(0.5), (b * b * b - a * a * a) / S(3)};
}

/// The larger and the smaller number, compared by their real parts.
template <class S> S larger(const S& a, const S& b) { return real_part(a) < real_part(b) ? b : a; }
template <class S> S smaller(const S& a, const S& b) { return real_part(b) < real_part(a) ? b : a; }

}  // namespace fw::detail
