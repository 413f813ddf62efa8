#pragma once

#include <fastweights/layers/layer.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// y = x: takes the place of the norm in a block without one.
///
/// Shapes: x, y d×T. Cost: a copy. Throws std::invalid_argument when a size does not fit.
template <class S> struct IdentityLayer {
  using Scalar = S;
  using State = Nothing;
  using Trace = Nothing;
  static constexpr std::string_view name = "IdentityLayer";
  static constexpr bool in_place = true;  ///< y may be x, and dx may be dy

  Index d;  ///< rows of x and y
  static constexpr auto names = fw::names("d");

  /// For x of any number of columns. Throws std::invalid_argument for d < 1.
  explicit IdentityLayer(Index rows) : d(rows) { detail::check_size<Dynamic>(name, "d", rows); }

  Index inputs() const { return d; }
  Index outputs() const { return d; }
  State initial_state() const { return {}; }

  void forward(State&, Input<S> x, Output<S> y, Trace&, Pass = Pass::infer) const {
    detail::check_forward(*this, x, y);
    y = x;
  }
  void backward(Input<S> x, Trace&, Input<S> dy, Output<S> dx, IdentityLayer& grad) const {
    detail::check_backward(*this, x, x.cols(), dy, dx, grad);
    dx = dy;
  }
};

}  // namespace fw
