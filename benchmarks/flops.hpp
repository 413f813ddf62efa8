#pragma once

#include <Eigen/Core>

namespace measure {

/// Flops of one token with d_k = d_v = d: cubes d³ + squares d² + lines d.
struct Flops {
  double squares = 0, cubes = 0, lines = 0;
  const char* also = "";  ///< what is not counted

  double at(Eigen::Index d) const {
    const auto n = static_cast<double>(d);
    return ((cubes * n + squares) * n + lines) * n;
  }
};

}  // namespace measure
