#pragma once

#include <Eigen/Core>
#include <cmath>

/// max|a|, NaN where one of the entries is: Eigen's maxCoeff() alone passes over most of them.
template <class A> auto largest_entry(const A& a) {
  using Scalar = typename A::Scalar;
  return a.size() > 0 ? a.matrix().cwiseAbs().template maxCoeff<Eigen::PropagateNaN>() : Scalar(0);
}

/// Makes `worst` the larger of the two; once it is NaN, it stays NaN.
inline void keep_worst(double& worst, double error) {
  if (error > worst || std::isnan(error)) worst = error;
}
