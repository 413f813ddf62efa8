#pragma once

#include <cmath>
#include <fastweights/layers/layer.hpp>
#include <fastweights/math/products.hpp>
#include <fastweights/math/random.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// Token t of each of B concatenated sequences in x, as a matrix of B columns.
template <class X> auto token_of_each(X& x, Index t, Index sequences) {
  using S = std::remove_pointer_t<decltype(x.data())>;
  using Plain = Eigen::Matrix<std::remove_const_t<S>, Dynamic, Dynamic>;
  using Each = std::conditional_t<std::is_const_v<S>, const Plain, Plain>;
  const Index stride = x.colStride();
  return Eigen::Map<Each, 0, Eigen::OuterStride<>>(
      x.data() + t * stride, x.rows(), sequences,
      Eigen::OuterStride<>(x.cols() / sequences * stride));
}

/// z += W h for the hidden units of one or several sequences. Allocates nothing at any size.
template <class Z, class W, class H> void add_weighted(Z&& z, const W& weight, const H& h) {
  if (h.cols() == 1)
    z.col(0).noalias() += weight * h.col(0);
  else
    add_product(z, weight, h);
}

/// The common part of recurrent layers with R hidden units: the slow weights, with the names and
/// shapes of PyTorch's single-layer recurrent modules, and the projection of all tokens at once.
///
///     z_t = W_ih x_t + b_ih + b_hh        (the layer adds W_hh h_{t−1} token by token)
///
/// Shapes: W_ih (gates·R)×D, W_hh (gates·R)×R, both biases gates·R (size 0 without them).
template <class S> struct RecurrentWeights {
  using Scalar = S;
  using Matrix = Eigen::Matrix<S, Dynamic, Dynamic>;
  using Vector = Eigen::Matrix<S, Dynamic, 1>;

  Matrix weight_ih;
  Matrix weight_hh;
  Vector bias_ih;
  Vector bias_hh;
  static constexpr auto names =
      fw::names("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0");

  RecurrentWeights(std::string_view layer, Index in, Index hidden, Index gates, bool bias) {
    check_size<Dynamic>(layer, "in", in);
    check_size<Dynamic>(layer, "hidden", hidden);
    weight_ih.setZero(gates * hidden, in);
    weight_hh.setZero(gates * hidden, hidden);
    bias_ih.setZero(bias ? gates * hidden : 0);
    bias_hh.setZero(bias ? gates * hidden : 0);
  }

  Index inputs() const { return weight_ih.cols(); }
  Index outputs() const { return weight_hh.cols(); }

  /// Uniform in ±1/√R, weights and biases, as PyTorch does.
  template <class Generator> void initialise(Generator& random) {
    const double bound = 1 / std::sqrt(static_cast<double>(outputs()));
    fill_uniform(random, bound, weight_ih, weight_hh, bias_ih, bias_hh);
  }

 protected:
  void project(const Input<S>& x, Matrix& z) const {
    z.resize(weight_ih.rows(), x.cols());
    if (bias_ih.size() > 0)
      for (Index t = 0; t < z.cols(); ++t) z.col(t) = bias_ih + bias_hh;
    else
      z.setZero();
    add_product(z, weight_ih, x);
  }

  /// `previous_hidden`: h_{t−1} of every token t, R×T.
  template <class Hidden>
  void project_backward(const Input<S>& x, const Matrix& dz, const Hidden& previous_hidden,
                        Output<S>& dx, RecurrentWeights& grad) const {
    add_product(grad.weight_ih, dz, x.transpose());
    add_product(grad.weight_hh, dz, previous_hidden.transpose());
    if (bias_ih.size() > 0)
      for (Index t = 0; t < dz.cols(); ++t) {
        grad.bias_ih += dz.col(t);
        grad.bias_hh += dz.col(t);
      }
    dx.setZero();
    add_product(dx, weight_ih.transpose(), dz);
  }
};

}  // namespace fw::detail
