#pragma once

#include <complex>
#include <fastweights/core/random.hpp>
#include <fastweights/feature_maps/chain.hpp>
#include <fastweights/feature_maps/dpfp.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/feature_maps/favor_plus.hpp>
#include <fastweights/feature_maps/identity.hpp>
#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/feature_maps/relu.hpp>
#include <fastweights/feature_maps/softmax.hpp>
#include <fastweights/feature_maps/tanh.hpp>
#include <limits>
#include <string>
#include <tuple>
#include <unsupported/Eigen/AutoDiff>

#include "support/catch.hpp"
#include "support/largest_entry.hpp"
#include "support/sizes.hpp"

/// \file
/// All feature maps, and what the tests of feature maps compare.

namespace feature_map_checks {

using Eigen::MatrixXd;
using Eigen::MatrixXf;
using Eigen::VectorXd;
using Eigen::VectorXf;
using fw::Dynamic;
using fw::Index;

using ThreeInARow = fw::Chain<fw::Dpfp<1>, fw::EluPlusOne, fw::L2Normalise>;

using Maps =
    std::tuple<fw::IdentityMap, fw::ReluMap, fw::EluPlusOne, fw::TanhMap, fw::Dpfp<1>, fw::Dpfp<3>,
               fw::FavorPlus<double>, fw::SoftmaxMap, fw::SumNormalise, fw::L2Normalise,
               fw::SumNormalised<fw::EluPlusOne>, fw::SumNormalised<fw::Dpfp<2>>,
               fw::L2Normalised<fw::FavorPlus<double>>, ThreeInARow>;

template <class M> M make(Index) { return {}; }
template <> inline fw::FavorPlus<double> make(Index d) { return {d, d + 2, 5}; }
template <> inline fw::L2Normalised<fw::FavorPlus<double>> make(Index d) {
  return {make<fw::FavorPlus<double>>(d), {}};
}

// The fewest rows a map takes: ν < 2d.
template <class M> constexpr Index fewest_rows = 1;
template <> inline constexpr Index fewest_rows<fw::Dpfp<3>> = 3;
template <> inline constexpr Index fewest_rows<fw::SumNormalised<fw::Dpfp<2>>> = 3;

// Normal entries, of lengths that FAVOR+ is made for; positive ones where a sum could cancel.
template <class M> MatrixXd input(Index d, Index steps, std::uint64_t seed = 1) {
  MatrixXd x(d, steps);
  fw::Random(seed).fill(x, std::pow(static_cast<double>(d), -0.25));
  if (std::is_same_v<M, fw::SumNormalise>) x = x.cwiseAbs().array() + 0.1;
  return x;
}

// What comes down to y. Not y itself: L2Normalise has no gradient along it.
inline MatrixXd random_gradient(const MatrixXd& y) {
  MatrixXd dy(y.rows(), y.cols());
  fw::Random(2).fill(dy);
  return dy;
}

template <class S, int F = Dynamic, class M, int D, int T>
auto mapped(const M& map, const Eigen::Matrix<S, D, T>& x) {
  constexpr auto nan = std::numeric_limits<float>::quiet_NaN();
  Eigen::Matrix<S, F, T> y(map.features(x.rows()), x.cols());
  y.setConstant(S(nan));
  fw::apply(map, x, y);
  return y;
}

template <class S, int D, int F, int T, class M>
auto gradient(const M& map, const Eigen::Matrix<S, D, T>& x, const Eigen::Matrix<S, F, T>& y,
              const Eigen::Matrix<S, F, T>& dy) {
  Eigen::Matrix<S, D, T> dx = Eigen::Matrix<S, D, T>::Zero(x.rows(), x.cols());
  fw::apply_vjp(map, x, y, dy, dx);
  return dx;
}

// max|a − b| / max|b|, and infinite where anything is NaN.
inline double difference(const MatrixXd& a, const MatrixXd& b) {
  if (a.hasNaN() || b.hasNaN()) return std::numeric_limits<double>::infinity();
  const double largest = b.cwiseAbs().maxCoeff();
  const double worst = largest_entry(a - b);
  return largest > 0 ? worst / largest : worst;
}

// The gradient of Σ dy∘φ(x) by the complex step; all columns at once, as each goes by itself.
template <class M> MatrixXd complex_step(const M& map, const MatrixXd& x, const MatrixXd& dy) {
  constexpr double h = 1e-30;
  const auto complex_map = fw::cast_feature_map<std::complex<double>>(map);
  Eigen::MatrixXcd z = x.cast<std::complex<double>>();
  MatrixXd dx(x.rows(), x.cols());
  for (Index i = 0; i < x.rows(); ++i) {
    z.row(i).array() += std::complex<double>(0, h);
    const MatrixXd imaginary = mapped(complex_map, z).imag();
    dx.row(i) = imaginary.cwiseProduct(dy).colwise().sum() / h;
    z.row(i) = x.row(i).cast<std::complex<double>>();
  }
  return dx;
}

template <class M> std::string message(const M& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing thrown";
}

}  // namespace feature_map_checks
