#pragma once

#include <fastweights/core/views.hpp>
#include <fastweights/layers/parameters.hpp>
#include <fastweights/math/random.hpp>

/// W x + b, a small model of a matrix and a vector, as programs write their own.
template <class S> struct AffineMap {
  Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic> weight;
  Eigen::Matrix<S, Eigen::Dynamic, 1> bias;
  static constexpr auto names = fw::names("weight", "bias");

  /// Zero until initialised or loaded.
  AffineMap(Eigen::Index in, Eigen::Index out) {
    weight.setZero(out, in);
    bias.setZero(out);
  }
  /// Uniform in ±1/√in.
  template <class Generator> void initialise(Generator& random) {
    const double bound = 1 / std::sqrt(static_cast<double>(weight.cols()));
    for (auto& entry : weight.reshaped()) entry = S(bound * (2 * random.uniform() - 1));
    for (auto& entry : bias) entry = S(bound * (2 * random.uniform() - 1));
  }
};
