#pragma once

#include <Eigen/Core>
#include <vector>

/// The sizes that a test checks: all, or a few in builds with sanitizers, which are tens of times
/// slower. A few odd sizes are enough to find reads beyond the end of an array; the other builds
/// check the numbers at every size.
template <class Size = Eigen::Index>
std::vector<Size> sizes([[maybe_unused]] std::vector<Size> all,
                        [[maybe_unused]] std::vector<Size> few) {
#ifdef FASTWEIGHTS_SANITIZED
  return few;
#else
  return all;
#endif
}
