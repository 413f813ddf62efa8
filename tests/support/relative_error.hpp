#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

/// \file
/// The error of an array relative to the largest entry of the truth. Gradients of one model are
/// computed from the same numbers, so a gradient that is 0 but for rounding, as that of a router
/// that chooses one expert and gives it the weight 1, has errors of the size of all others. Such an
/// array is compared with the largest of them.

/// Largest entries below this part of the largest of all gradients are only rounding.
constexpr double rounding_of_gradients = 1e-13;

/// The divisor of an error, from the largest entry of the truth, and that of all gradients of the
/// model if the array is one.
inline double error_scale(double largest, double largest_of_all = 0) {
  return largest > rounding_of_gradients * largest_of_all ? largest : largest_of_all;
}

/// max|given − expected| over this scale. Infinity if an entry of `given` is NaN; the difference
/// itself where all truth is 0.
inline double relative_error(const double* given, const std::vector<double>& expected,
                             double largest_of_all = 0) {
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double error = std::abs(given[i] - expected[i]);
    worst = std::max(worst, std::isnan(error) ? std::numeric_limits<double>::infinity() : error);
    largest = std::max(largest, std::abs(expected[i]));
  }
  const double scale = error_scale(largest, largest_of_all);
  return scale > 0 ? worst / scale : worst;
}
