#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <fastweights/core/activations.hpp>

/// \file
/// Where the old signal is sampled when a chunk is written: evenly, or where it was last attended
/// to. Positions are constants for the gradients.

namespace fw {

using Eigen::Index;

/// How sticky positions follow from numbers drawn uniformly from [0, 1).
enum class Draws {
  stratified,  ///< F⁻¹((m + u_m)/M), straight within a bin: one draw in each M-th of the mass
  published    ///< the left edge of the bin that F⁻¹(u_m) falls into, independent draws, sorted
};

namespace detail {

/// The positions for draws u by a histogram of D equal bins over [0, 1], ascending; evenly (the
/// middles of M cells) when the histogram is empty.
template <class Histogram, class U, class Positions>
void sticky_positions(const Histogram& histogram, const U& draws, Draws scheme, Positions& to) {
  const Index count = to.size(), bins = histogram.size();
  // In float the mass of a bin far out may come out a little below zero.
  const auto mass = [&](Index b) {
    return std::max(0.0, static_cast<double>(real_part(histogram[b])));
  };
  double total = 0;
  Index last = 0;  // bin with any mass
  for (Index b = 0; b < bins; ++b) {
    total += mass(b);
    if (mass(b) > 0) last = b;
  }
  if (!(total > 0)) {
    for (Index m = 0; m < count; ++m)
      to[m] = (static_cast<double>(m) + 0.5) / static_cast<double>(count);
    return;
  }
  const bool strata = scheme == Draws::stratified;
  for (Index m = 0; m < count; ++m) {
    const auto drawn = static_cast<double>(real_part(draws[m]));
    const double u = drawn >= 0 ? std::min(drawn, 1.0) : 0.0;  // NaN cannot be sorted
    to[m] = strata ? (static_cast<double>(m) + u) / static_cast<double>(count) : u;
  }
  std::sort(to.data(), to.data() + count);
  Index bin = 0;
  double below = 0;  // the mass of the bins before this one
  for (Index m = 0; m < count; ++m) {
    const double wanted = to[m] * total;
    while (bin < last && below + mass(bin) <= wanted) below += mass(bin++);
    const double inside = mass(bin) > 0 ? std::clamp((wanted - below) / mass(bin), 0.0, 1.0) : 0.0;
    to[m] = (static_cast<double>(bin) + (strata ? inside : 0.0)) / static_cast<double>(bins);
  }
}

}  // namespace detail

}  // namespace fw
