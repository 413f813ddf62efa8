#pragma once

#include <algorithm>
#include <cstring>
#include <fastweights/core/errors.hpp>
#include <fastweights/core/finite.hpp>
#include <fastweights/core/implementation/inline.hpp>

/// \file
/// The functions of core/finite.hpp. They load numbers as integers from memory and are not inlined,
/// so that a compiler that assumes finite numbers cannot conclude anything from their type.

namespace fw::inline FASTWEIGHTS_ABI::detail {

// An integer for each number, in the order of the numbers. NaNs are beyond the infinities, and −0
// is just below 0.
template <class Int> Int ordered(Int bits) {
  return bits < 0 ? Int(bits ^ std::numeric_limits<Int>::max()) : bits;
}
template <class Int> Int load_ordered(const void* from) {
  Int bits;
  std::memcpy(&bits, from, sizeof bits);
  return ordered(bits);
}

// The bound of an interval as such an integer. Numbers beyond the range of S become its largest.
template <class Int, class S> Int ordered_bound(double bound, bool is_low) {
  const double largest = static_cast<double>(std::numeric_limits<S>::max());
  const S clamped = static_cast<S>(std::clamp(bound, -largest, largest));
  const Int order = load_ordered<Int>(&clamped);
  return is_low && order == 0 ? Int(-1) : order;  // from −0
}

template <class Int, class S> Index first_outside_as(const Entries& e, const Interval& interval) {
  const Int low = ordered_bound<Int, S>(interval.low, true);
  const Int high = ordered_bound<Int, S>(interval.high, false);
  const auto* column = static_cast<const std::byte*>(e.data);
  const auto outside = [&](Index i) {
    const Int x = load_ordered<Int>(column + i * Index(sizeof(Int)));
    return Int(x < low) | Int(x > high);
  };
  for (Index j = 0; j < e.cols; ++j, column += e.stride * Index(sizeof(Int))) {
    Int any = 0;  // no early exit, so that the loop vectorises
    for (Index i = 0; i < e.rows; ++i) any = Int(any | outside(i));
    for (Index i = 0; any != 0 && i < e.rows; ++i)
      if (outside(i) != 0) return i + j * e.rows;
  }
  return -1;
}

// One number at a time: the imaginary part has no interval.
inline Index first_outside_complex(const Entries& e, const Interval& interval) {
  for (Index n = 0; n < e.rows * e.cols; ++n) {
    const auto* real =
        static_cast<const double*>(e.data) + 2 * (n % e.rows + n / e.rows * e.stride);
    if (first_outside_as<std::int64_t, double>({real}, interval) >= 0 ||
        first_outside_as<std::int64_t, double>({real + 1}, {}) >= 0)
      return n;
  }
  return -1;
}

EIGEN_DONT_INLINE FASTWEIGHTS_INLINE Index first_outside(const Entries& e,
                                                         const Interval& interval) {
  switch (e.scalar) {
    case ScalarKind::float32:
      return first_outside_as<std::int32_t, float>(e, interval);
    case ScalarKind::float64:
      return first_outside_as<std::int64_t, double>(e, interval);
    case ScalarKind::float16:
      return first_outside_as<std::int16_t, Eigen::half>(e, interval);
    case ScalarKind::bfloat16:
      return first_outside_as<std::int16_t, Eigen::bfloat16>(e, interval);
    case ScalarKind::complex128:
      return first_outside_complex(e, interval);
    case ScalarKind::integer:
      return -1;
    case ScalarKind::other:
      break;
  }
  throw_invalid({"fastweights: numbers of this type cannot be tested by their bits"});
}

FASTWEIGHTS_INLINE bool is_finite(const double& x) {
  return first_outside({&x, 1, 1, 1, ScalarKind::float64}, {}) < 0;
}

FASTWEIGHTS_INLINE bool all_finite(const Object& object) {
  bool finite = true;
  visit_leaves(&object, 1, [&](const Leaf* leaf, const LeafPath&) {
    const Index n = leaf->size();
    if (finite) finite = first_outside({leaf->data, n, 1, n, leaf->scalar}, {}) < 0;
  });
  return finite;
}

}  // namespace fw::detail
