#pragma once

#include <cmath>
#include <fastweights/core/signatures.hpp>
#include <fastweights/math/random.hpp>
#include <string>
#include <vector>

using fw::Index;
template <class S> using Matrix = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic>;

struct ProblemSizes {
  long largest = 64;  ///< of d, M, h and o
  long batch = 16;
};

/// A random hypernetwork and a batch of inputs, one a column. Entries are floats, so that both
/// precisions compute the same.
struct Problem {
  std::vector<Matrix<float>> theta;
  Matrix<float> a, x, z;

  Problem(const ProblemSizes& s, fw::Random& random) {
    // Small sizes are as frequent as large ones.
    const auto size = [&] {
      return static_cast<Index>(std::pow(static_cast<double>(s.largest + 1), random.uniform()));
    };
    const Index d = size(), h = size(), o = size(), programs = size();
    const auto fill = [&](Index rows, Index cols, Index terms) {
      Matrix<float> m(rows, cols);
      random.fill(m, 1 / std::sqrt(static_cast<double>(terms)));
      return m;
    };
    for (Index m = 0; m < programs; ++m) theta.push_back(fill(h, d, d));
    a = fill(o, h, h);
    x = fill(d, s.batch, 1);
    z = fill(programs, s.batch, programs);
  }
};

/// The larger of two errors. Once an error is NaN, the worst stays NaN.
inline void keep_worst(double& worst, double error) {
  if (error > worst || std::isnan(error)) worst = error;
}

/// The worst relative error of full and causal, sum rule and delta rule, with a nonlinearity
/// "tanh", "relu" or "sigmoid".
template <class S> double worst_error(const Problem& p, const std::string& nonlinearity);

/// The width of the transformer block.
Index block_width(const Problem& p);
