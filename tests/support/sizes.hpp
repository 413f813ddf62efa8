#pragma once

#include <Eigen/Core>
#include <vector>

/// Which sizes a test tries: all of them, or with the sanitizers, which make everything tens of
/// times slower, a few. What reads beyond an array's end does so at one odd size as at another;
/// whether the numbers are right at every size, the other builds tell.
inline std::vector<Eigen::Index> sizes([[maybe_unused]] std::vector<Eigen::Index> all,
                                       [[maybe_unused]] std::vector<Eigen::Index> few) {
#ifdef FASTWEIGHTS_SANITIZED
  return few;
#else
  return all;
#endif
}
