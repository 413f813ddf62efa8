#pragma once

#include <fastweights/core/leaves.hpp>
#include <limits>

/// \file
/// Tests of numbers by their bits. They also hold under -ffast-math, with which a compiler removes
/// std::isfinite and every comparison that asks for NaN.

namespace fw::inline FASTWEIGHTS_ABI {

namespace detail {

/// A closed interval of numbers. NaN is in none.
struct Interval {
  double low = std::numeric_limits<double>::lowest();
  double high = std::numeric_limits<double>::max();
};

/// The columns of an array. Entries of a column are contiguous, columns are `stride` entries apart.
struct Entries {
  const void* data = nullptr;
  Index rows = 1, cols = 1, stride = 1;
  ScalarKind scalar = ScalarKind::other;
};

/// The position, row + column·rows, of the first entry outside the interval, or −1. Both parts of a
/// complex number must be finite and its real part in the interval. Integers are in any interval.
Index first_outside(const Entries& entries, const Interval& interval);

bool is_finite(const double& x);

bool all_finite(const Object& object);

}  // namespace detail

/// True if every number of a record is finite, at any depth: a state, a gradient, a layer or a
/// moment of the optimiser. A layer's memory and feature map are not part of its record. Does not
/// allocate.
///
///     if (!fw::all_finite(state)) state = last_good_state;
template <class R>
requires(Record<R> || is_record_list<R>) bool all_finite(const R& record) {
  return detail::all_finite(detail::object(record));
}

/// True if every number of a matrix is finite, such as the outputs of a scan.
template <class D> bool all_finite(const Eigen::PlainObjectBase<D>& matrix) {
  return detail::all_finite(detail::object(matrix.derived()));
}

}  // namespace fw

#ifndef FASTWEIGHTS_COMPILED
#include <fastweights/core/implementation/finite.hpp>
#endif
