#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <fastweights/math/activations.hpp>

/// \file
/// The positions at which a write samples the past signal: evenly spaced, or where reads attended
/// to since the last write. Gradients treat positions as constants.

namespace fw::inline FASTWEIGHTS_ABI {

using Eigen::Index;

/// Sticky positions from uniform random numbers u in [0, 1); F is the histogram's distribution
/// function.
enum class SamplingScheme {
  stratified,  ///< F⁻¹((m + u_m)/M), linear within a bin: one sample per M-th of the mass
  published    ///< the left edge of the bin of F⁻¹(u_m): independent samples, sorted
};

namespace detail {

/// The positions for draws u and a histogram of equal bins over [0, 1], in ascending order. For
/// an empty histogram, the centres of M equal cells.
template <class Histogram, class U, class Positions>
void sticky_positions(const Histogram& histogram, const U& draws, SamplingScheme scheme,
                      Positions& positions) {
  const Index count = positions.size(), bins = histogram.size();
  // Rounding in float may give an outer bin a small negative mass.
  const auto mass = [&](Index b) {
    return std::max(0.0, static_cast<double>(real_part(histogram[b])));
  };
  double total = 0;
  Index last = 0;  // the last bin with mass
  for (Index b = 0; b < bins; ++b) {
    total += mass(b);
    if (mass(b) > 0) last = b;
  }
  if (!(total > 0)) {
    for (Index m = 0; m < count; ++m)
      positions[m] = (static_cast<double>(m) + 0.5) / static_cast<double>(count);
    return;
  }
  const bool strata = scheme == SamplingScheme::stratified;
  for (Index m = 0; m < count; ++m) {
    const auto drawn = static_cast<double>(real_part(draws[m]));
    const double u = drawn >= 0 ? std::min(drawn, 1.0) : 0.0;  // NaN cannot be sorted
    positions[m] = strata ? (static_cast<double>(m) + u) / static_cast<double>(count) : u;
  }
  std::sort(positions.data(), positions.data() + count);
  Index bin = 0;
  double below = 0;  // the mass of all bins before `bin`
  for (Index m = 0; m < count; ++m) {
    const double wanted = positions[m] * total;
    while (bin < last && below + mass(bin) <= wanted) below += mass(bin++);
    const double inside = mass(bin) > 0 ? std::clamp((wanted - below) / mass(bin), 0.0, 1.0) : 0.0;
    positions[m] = (static_cast<double>(bin) + (strata ? inside : 0.0)) / static_cast<double>(bins);
  }
}

}  // namespace detail

}  // namespace fw
