#pragma once

#include <cmath>
#include <concepts>
#include <fastweights/core/finite.hpp>
#include <fastweights/core/memory.hpp>
#include <fastweights/core/signatures.hpp>
#include <limits>

/// \file
/// Tokens that keep a memory stable. fw::checked_step and fw::checked_scan refuse all others, and
/// layers refuse feature maps that make others.
///
/// Every entry must be finite and below 2^50 ≈ 1e15 in size for float, 2^500 ≈ 3e150 for double, so
/// that products of two entries and long sums of them are finite. Roles narrow this: a strength is
/// 0 to 2, a decay 0 to 1, a draw at least 0 and below 1, and a distribution has entries of 0 to 1
/// with sum 1. A rule adds a condition of its own in one optional member, which is called for
/// tokens that are in these ranges:
///
///     Violation violation(const WriteToken<Rule>& t) const {
///       return fw::delta_violation(t.beta, t.key);
///     }
///
/// If this condition bounds a strength by the length of its key, as in the delta rules, the
/// strength itself need not be at most 2: short keys take a large one, as in the NLMS filter with
/// β = μ/‖k‖². `static constexpr bool key_bounds_strength = true;` says so, and the range is then 0
/// to 1e12 for float, 1e147 for double, so that products with the state stay finite.

namespace fw::inline FASTWEIGHTS_ABI {

/// A condition that a token violates: none if `quantity` is empty. The error is "Rule: " and
/// "quantity is given, expected …". The texts must be literals.
struct Violation {
  std::string_view quantity = {};  ///< what is out of range, empty if nothing is
  double given = 0;                ///< its value
  std::string_view expected = {};  ///< the range it must be in
  /// True if something is out of range.
  explicit operator bool() const { return !quantity.empty(); }
};

/// Has a condition of its own for stable writes.
template <class M>
concept StabilityCondition = Memory<M> && requires(const M& m, const WriteToken<M>& t) {
  { m.violation(t) } -> std::same_as<Violation>;
};

/// Has a condition that also depends on the state: `with_trial(s, f)` calls f(trial) once, and
/// trial(token) is called for every token in order and gives the violation of that token after the
/// ones before it. The trial has a copy of what it needs of the state, so nothing is written yet.
template <class M>
concept StateCondition = Memory<M> && requires(const M& m, const StateOf<M>& s) {
  m.with_trial(s, [](auto&&) {});
};

/// True if a rule's own condition bounds every strength by the length of its key.
template <class M> constexpr bool key_bounds_strength() {
  if constexpr (requires { M::key_bounds_strength; })
    return M::key_bounds_strength;
  else
    return false;
}

namespace detail {

/// The bound for the size of an input.
template <class S> constexpr double largest_input() {
  return scalar_kind<S>() == ScalarKind::float32 ? 0x1p50 : 0x1p500;
}

/// ‖x‖², of the real parts.
template <class X> double squared_norm(const Eigen::MatrixBase<X>& x) {
  return static_cast<double>(x.real().squaredNorm());
}
// β is a number or one per row.
template <class B> double largest_strength(const B& beta) {
  if constexpr (requires { beta.maxCoeff(); })
    return static_cast<double>(beta.real().maxCoeff());
  else
    return static_cast<double>(Eigen::numext::real(beta));
}

// Limit of the factor that a write subtracts. 64 units of rounding above 2 pass: a normalised key
// has them.
template <class S> Violation factor_violation(double factor, std::string_view quantity) {
  using Real = typename Eigen::NumTraits<S>::Real;
  constexpr double rounding = 64 * static_cast<double>(std::numeric_limits<Real>::epsilon());
  if (factor <= 2 + rounding) return {};
  return {quantity, factor, "at most 2: normalise the keys"};
}

}  // namespace detail

/// A write W ← W + β (v − W k) kᵀ multiplies W k by 1 − β‖k‖², so it is stable for β‖k‖² ≤ 2. β is
/// a number or one per row. A key of length 1 up to rounding passes with β = 2.
template <class B, class K>
Violation delta_violation(const B& beta, const K& key,
                          std::string_view quantity = "beta times the squared norm of key") {
  const double factor = detail::largest_strength(beta) * detail::squared_norm(key);
  return detail::factor_violation<typename K::Scalar>(factor, quantity);
}

/// A write W ← α W + β (v − W k) kᵀ, which reads W before its decay, multiplies W k by α − β‖k‖²,
/// so it is stable for β‖k‖² + 1 − α ≤ 2.
template <class S, class K>
Violation undecayed_delta_violation(const S& beta, const K& key, const S& decay) {
  const double factor = detail::largest_strength(beta) * detail::squared_norm(key) + 1 -
                        detail::largest_strength(decay);
  return detail::factor_violation<typename K::Scalar>(
      factor, "beta times the squared norm of key, plus 1 minus decay");
}

namespace detail {

/// One member of a token or of a sequence.
struct CheckedMember {
  std::string_view rule, member;
  Entries entries;
  double largest = 0;          // largest_input
  const Role* role = nullptr;  // null if the signature has no roles
  Index width = 0;             // columns per token; 0 if this is one token
  bool key_bounds_strength = false;
};

/// Throws std::invalid_argument unless all entries are in the range of their role.
void check_entries(const CheckedMember& m);

/// Throws std::invalid_argument. `token` is −1 for a single token.
[[noreturn]] void throw_violation(std::string_view rule, const Violation& v, Index token);

/// Throws std::invalid_argument unless a hyperparameter is finite. Scalars that are no numbers of
/// their own, such as Eigen's AutoDiffScalar, pass.
template <class T>
void check_finite(std::string_view rule, std::string_view which, const T& given) {
  if constexpr (requires { static_cast<double>(Eigen::numext::real(given)); }) {
    const double number = static_cast<double>(Eigen::numext::real(given));
    if (!is_finite(number)) throw_violation(rule, {which, number, "a finite number"}, -1);
  }
}

template <class T> Entries entries_of(const T& x) {
  if constexpr (requires { x.colStride(); })
    return {x.data(), x.rows(), x.cols(), x.colStride(),
            scalar_kind<std::remove_const_t<typename T::Scalar>>()};
  else
    return {&x, 1, 1, 1, scalar_kind<T>()};
}

}  // namespace detail

}  // namespace fw

#ifndef FASTWEIGHTS_COMPILED
#include <fastweights/core/implementation/stability.hpp>
#endif
