#pragma once

#include <cmath>
#include <fastweights/core/implementation/inline.hpp>
#include <fastweights/core/stability.hpp>
#include <string>

/// \file
/// The functions of core/stability.hpp.

namespace fw::inline FASTWEIGHTS_ABI::detail {

inline bool is_float(const CheckedMember& m) { return m.largest < 1e100; }

inline Interval range_of(const CheckedMember& m) {
  if (m.role != nullptr) switch (*m.role) {
      case Role::strength:
        return {0, !m.key_bounds_strength ? 2 : is_float(m) ? 1e12 : 1e147};
      case Role::decay:
      case Role::distribution:
        return {0, 1};
      case Role::draw:
        return {0, m.entries.scalar == ScalarKind::float32 ? 1 - 0x1p-24 : 1 - 0x1p-53};
      case Role::key:
      case Role::value:
        break;
    }
  return {-m.largest, m.largest};
}

inline const char* range_text(const CheckedMember& m) {
  if (m.role != nullptr) switch (*m.role) {
      case Role::strength:
        return !m.key_bounds_strength ? "0 to 2" : is_float(m) ? "0 to 1e12" : "0 to 1e147";
      case Role::decay:
      case Role::distribution:
        return "0 to 1";
      case Role::draw:
        return "at least 0 and below 1";
      case Role::key:
      case Role::value:
        break;
    }
  return is_float(m) ? "a finite number below 1.1e15 in size"
                     : "a finite number below 3.2e150 in size";
}

// Entry i of column j; of a complex number the part that is not finite, or the real part.
inline double number_at(const Entries& e, Index i, Index j) {
  const Index n = i + j * e.stride;
  if (e.scalar == ScalarKind::float32) return double(static_cast<const float*>(e.data)[n]);
  if (e.scalar == ScalarKind::float64) return static_cast<const double*>(e.data)[n];
  const double* parts = static_cast<const double*>(e.data) + 2 * n;
  return is_finite(parts[1]) ? parts[0] : parts[1];
}

inline std::string token_text(Index token) {
  return token < 0 ? std::string() : "token " + std::to_string(token) + ": ";
}

[[noreturn]] inline void throw_entry(const CheckedMember& m, Index position) {
  const Index i = position % m.entries.rows, j = position / m.entries.rows;
  const Index width = m.width > 0 ? m.width : m.entries.cols;
  std::string place;
  if (m.entries.rows > 1 && width > 1)
    place = "(" + std::to_string(i) + ", " + std::to_string(j % width) + ")";
  else if (m.entries.rows > 1 || width > 1)
    place = "[" + std::to_string(width > 1 ? j % width : i) + "]";
  throw_invalid({m.rule, ": ", token_text(m.width > 0 ? j / width : -1), m.member, place, " is ",
                 number_text(number_at(m.entries, i, j)), ", expected ", range_text(m)});
}

EIGEN_DONT_INLINE FASTWEIGHTS_INLINE void throw_violation(std::string_view rule, const Violation& v,
                                                          Index token) {
  throw_invalid({rule, ": ", token_text(token), v.quantity, " is ", number_text(v.given),
                 ", expected ", v.expected});
}

inline void check_sums(const CheckedMember& m) {
  for (Index j = 0; j < m.entries.cols; ++j) {
    double sum = 0;
    for (Index i = 0; i < m.entries.rows; ++i) sum += number_at(m.entries, i, j);
    if (std::abs(sum - 1) <= 1e-3) continue;
    const std::string quantity = "the sum of " + std::string(m.member);
    throw_violation(m.rule, {quantity, sum, "1"}, m.width > 0 ? j / m.width : -1);
  }
}

EIGEN_DONT_INLINE FASTWEIGHTS_INLINE void check_entries(const CheckedMember& m) {
  const Index outside = first_outside(m.entries, range_of(m));
  if (outside >= 0) throw_entry(m, outside);
  if (m.role != nullptr && *m.role == Role::distribution) check_sums(m);
}

}  // namespace fw::detail
