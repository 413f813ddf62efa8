#pragma once

#include <Eigen/Core>
#include <cmath>
#include <fastweights/core/errors.hpp>
#include <fastweights/core/scratch.hpp>
#include <fastweights/core/stability.hpp>
#include <fastweights/math/activations.hpp>
#include <string>
#include <string_view>
#include <type_traits>

/// \file
/// What a token of Mamba3 and of Mamba3Mimo does alike: it turns keys and queries by accumulated
/// angles, and weighs the last and the new token by the trapezoidal rule.

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// Throws unless `angles` is 0 to d_k / 2, and the number that is fixed if one is.
template <int Fixed> void check_angles(std::string_view name, Index angles, Index dk) {
  if (angles < 0 || angles > dk / 2 || (Fixed != Dynamic && angles != Fixed))
    throw_invalid({name, ": the number of angles is ", std::to_string(angles), ", expected 0 to ",
                   std::to_string(dk / 2)});
}

/// The weights of the last and of the new token in W: (1 − λ) Δ α and λ Δ.
template <class S> struct TrapezoidWeights {
  template <class Token>
  explicit TrapezoidWeights(const Token& t)
      : last((S(1) - t.share) * t.step * t.decay), token(t.share * t.step) {}

  S last, token;
};
/// Adds the gradients of a token's decay, step and share; dlast and dtoken are those of its
/// weights.
template <class Token, class S, class DToken>
void add_trapezoid_gradients(const Token& t, const S& dlast, const S& dtoken, DToken& dt) {
  dt.decay += (S(1) - t.share) * t.step * dlast;
  dt.step += (S(1) - t.share) * t.decay * dlast + t.share * dtoken;
  dt.share += t.step * (dtoken - t.decay * dlast);
}
template <class Token> Violation share_violation(const Token& t) {
  if (Eigen::numext::real(t.share) <= 1) return {};
  return {"share", static_cast<double>(Eigen::numext::real(t.share)), "0 to 1"};
}

template <class S> S half_circle() { return S(3.14159265358979323846); }

/// θ ← θ + π Δ tanh(a) mod 2π. The whole number of turns is a constant for the gradient.
template <class A, class S, class X> void turn(A& angle, const S& step, const X& angles) {
  const auto circle = real_part(S(S(2) * half_circle<S>()));
  if constexpr (std::is_floating_point_v<S>) {
    angle.array() += half_circle<S>() * step * angles.array().tanh();
    angle.array() -= circle * (angle.array() / circle).floor();
  } else {
    using std::floor;
    for (Index i = 0; i < angle.size(); ++i) {
      angle[i] += half_circle<S>() * step * Tanh().value(S(angles[i]));
      angle[i] -= S(circle * floor(real_part(S(angle[i])) / circle));
    }
  }
  // A tiny negative angle is rounded to a full circle.
  for (Index i = 0; i < angle.size(); ++i)
    if (real_part(S(angle[i])) >= circle) angle[i] -= S(circle);
}
template <class S, class X, class DA, class DX>
void add_turn_gradients(const S& step, const X& angles, const DA& dangle, S& dstep, DX& dangles) {
  for (Index i = 0; i < dangle.size(); ++i) {
    dstep += half_circle<S>() * Tanh().value(S(angles[i])) * dangle[i];
    dangles[i] += half_circle<S>() * step * Tanh().derivative(S(angles[i])) * dangle[i];
  }
}

/// x ← R(θ) x for every column of each x.
template <int Angles, class A, class... X> void rotate(const A& angle, X&... x) {
  using S = typename A::Scalar;
  scratch<S, Angles, 2>(angle.size(), [&](auto& c, auto& s) {
    c = angle.array().cos();
    s = angle.array().sin();
    const auto rotate_one = [&](auto& columns) {
      for (Index j = 0; j < columns.cols(); ++j)
        for (Index i = 0; i < angle.size(); ++i) {
          const S even = columns(2 * i, j), odd = columns(2 * i + 1, j);
          columns(2 * i, j) = c[i] * even - s[i] * odd;
          columns(2 * i + 1, j) = s[i] * even + c[i] * odd;
        }
    };
    (rotate_one(x), ...);
  });
}
/// Turns the gradient of `rotated` = R(θ) x into that of x, and adds that of θ.
template <class X, class A, class DX, class DA>
void rotate_vjp(const X& rotated, const A& angle, DX& dx, DA& dangle) {
  using S = typename A::Scalar;
  using std::cos, std::sin;
  for (Index i = 0; i < angle.size(); ++i) {
    const S c = cos(angle[i]), s = sin(angle[i]);
    for (Index j = 0; j < dx.cols(); ++j) {
      const S even = dx(2 * i, j), odd = dx(2 * i + 1, j);
      dangle[i] += odd * rotated(2 * i, j) - even * rotated(2 * i + 1, j);
      dx(2 * i, j) = c * even + s * odd;
      dx(2 * i + 1, j) = c * odd - s * even;
    }
  }
}

}  // namespace fw::detail
