#pragma once

#include <complex>
#include <fastweights/layers/parameters.hpp>
#include <fastweights/math/random.hpp>
#include <string>

#include "support/catch.hpp"
#include "support/largest_entry.hpp"

/// \file
/// Random layers and their gradients by the complex step.

namespace layer_checks {

using Complex = std::complex<double>;
using fw::Index;

template <class S> using Matrix = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic>;

inline Matrix<double> random_matrix(Index rows, Index cols, fw::Random& random) {
  Matrix<double> m(rows, cols);
  random.fill(m);
  return m;
}

/// Randomises every parameter, also those initialised with 0 or 1. Activations stay near 1.
template <class L> void randomise(L& layer, fw::Random& random) {
  fw::for_each_parameter(
      [&](const std::string&, auto& p) {
        random.fill(p, 0.8 / std::sqrt(static_cast<double>(p.cols())));
      },
      layer);
}

template <class L, class Z> void copy_parameters(const L& from, Z& to) {
  fw::for_each_parameter(
      [](const std::string&, auto& z, const auto& p) {
        REQUIRE((z.rows() == p.rows() && z.cols() == p.cols()));
        z = p.template cast<typename std::remove_reference_t<decltype(z)>::Scalar>();
      },
      to, from);
}

/// A gradient of ones: a backward pass adds to it.
template <class L> L ones_like(const L& layer) {
  L ones = layer;
  fw::for_each_parameter([](const std::string&, auto& p) { p.setOnes(); }, ones);
  return ones;
}

template <class A, class B> double relative_difference(const A& a, const B& b) {
  const double largest = largest_entry(b), difference = largest_entry(a - b);
  return largest > 0 ? difference / largest : difference;
}

/// max|given − exact| / max|exact|, where exact is the complex-step gradient of `loss` with respect
/// to `array`, at up to 150 entries spread over it.
template <class Array, class Gradient, class Loss>
double gradient_error(Array& array, const Gradient& given, const Loss& loss) {
  constexpr double h = 1e-30;
  const Index stride = 1 + array.size() / 150;
  double difference = 0, largest = 0;
  for (Index n = 0; n < array.size(); n += stride) {
    const Index i = n % array.rows(), j = n / array.rows();
    const Complex original = array(i, j);
    array(i, j) += Complex(0, h);
    const double exact = loss().imag() / h;
    array(i, j) = original;
    keep_worst(difference, std::abs(given(i, j) - exact));
    largest = std::max(largest, std::abs(exact));
  }
  return largest > 0 ? difference / largest : difference;
}

/// True if all parameters of two layers, or all arrays of two states, are equal.
template <class L> bool same_parameters(const L& a, const L& b) {
  bool same = true;
  fw::for_each_parameter(
      [&](const std::string&, const auto& p, const auto& q) { same = same && p == q; }, a, b);
  return same;
}

/// The dotted names of a layer's parameters, in order, one per line.
template <class L> std::string parameter_names(const L& layer) {
  std::string names;
  fw::for_each_parameter([&](const std::string& path, const auto&) { names += path + "\n"; },
                         layer);
  return names;
}

}  // namespace layer_checks
