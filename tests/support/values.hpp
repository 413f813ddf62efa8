#pragma once

#include <cstdint>
#include <fastweights/core/leaves.hpp>
#include <vector>

/// \file
/// The numbers of a record, and the difference of two records.

namespace laws {

/// The real numbers of a record as double, and its counters.
struct Values {
  std::vector<double> numbers;
  std::vector<std::int64_t> counters;
};
Values values_of(const fw::detail::Object& record);

/// max|a − b| / max|b| over all numbers of two records together; infinite if counters differ. It is
/// not taken per array: the compensation of a normaliser holds rounding errors, which depend on the
/// order of summation.
double difference(const Values& a, const Values& b);

}  // namespace laws
