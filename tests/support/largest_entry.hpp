#pragma once

#include <Eigen/Core>
#include <cmath>

/// max|a|, or NaN if an entry is NaN. Eigen's default maxCoeff() ignores most NaNs.
template <class A> auto largest_entry(const A& a) {
  using Scalar = typename A::Scalar;
  return a.size() > 0 ? a.matrix().cwiseAbs().template maxCoeff<Eigen::PropagateNaN>() : Scalar(0);
}

/// worst = max(worst, error). A NaN stays a NaN.
inline void keep_worst(double& worst, double error) {
  if (error > worst || std::isnan(error)) worst = error;
}
