#pragma once

#include <fastweights/layers/layer.hpp>
#include <fastweights/math/activations.hpp>
#include <fastweights/math/products.hpp>
#include <fastweights/math/random.hpp>

/// \file
/// Gates x ⊙ g(x), with g in (0, 1), that a chunk passes before it is written to a long-term
/// memory. A gate is a record like a layer, but without a state: every chunk is padded by itself.
/// `length(L)` is the number of output columns for L tokens, and `inputs()`, in gates for a fixed
/// d, the number of rows. All functions throw std::invalid_argument when a size does not fit;
/// nothing is changed then.

namespace fw::inline FASTWEIGHTS_ABI {

namespace detail {

// The rows that a gate expects; a gate without inputs() takes any number.
template <class G> Index gate_rows(const G& gate, Index given) {
  if constexpr (requires { gate.inputs(); })
    return gate.inputs();
  else
    return given;
}
template <class G, class S>
void check_gate(const G& gate, const Input<S>& x, std::string_view argument, const Index rows,
                const Index columns) {
  const Index expected = gate_rows(gate, x.rows());
  check_extent(G::name, "x", x, expected, x.cols());
  if (rows != expected) throw_mismatch(G::name, argument, rows, "rows", expected, "the gate");
  if (columns != gate.length(x.cols()))
    throw_mismatch(G::name, argument, columns, "columns", gate.length(x.cols()), "the gate");
}
// `trained`: the output columns of the last forward pass.
template <class G, class S>
void check_gate_backward(const G& gate, const Input<S>& x, Index trained, const Input<S>& dy,
                         const Output<S>& dx, const G& grad) {
  check_gate(gate, x, "dy", dy.rows(), dy.cols());
  if (dy.cols() != trained)
    throw_mismatch(G::name, "dy", dy.cols(), "columns", trained, "the last pass");
  check_extent(G::name, "dx", dx, x.rows(), x.cols());
  check_gradient(G::name, gate, grad);
}

// The common part of all gates: y = x ⊙ sigmoid(z) and its derivative.
template <class S, class X, class Z, class Y> void gate(const X& x, Z& z, Y& y) {
  z = z.unaryExpr([](const S& each) { return Sigmoid{}.value(each); });
  y = x.cwiseProduct(z);
}
template <class S, class X, class G, class Dy, class Dz>
void gate_vjp(const X& x, const G& g, const Dy& dy, Dz& dz) {
  dz = dy.cwiseProduct(x).cwiseProduct(g).cwiseProduct((S(1) - g.array()).matrix());
}

}  // namespace detail

/// No gate: y = x.
template <class S> struct NoGate {
  using Scalar = S;
  struct Trace {};
  static constexpr auto names = fw::names();

  /// The columns of the gated chunk.
  Index length(Index tokens) const { return tokens; }
  void forward(Input<S> x, Output<S> y, Trace&) const { y = x; }
  void backward(Input<S>, Trace&, Input<S> dy, Output<S> dx, NoGate&) const { dx = dy; }
};

/// A gate by a convolution of width 3 over time, with zeros before and after the chunk.
///
///     y_l = x_l ⊙ sigmoid(W [x_{l−1}; x_l; x_{l+1}] + b)
///
/// Shapes: x, y d×L; weight d×3d, PyTorch's Conv1d weight [d, d, 3] with its last two axes merged;
/// bias d. Cost: 6 d² flops per token. Throws std::invalid_argument when a size does not fit.
/// Martins et al. 2022, arXiv 2109.00301, section 3.1.
template <class S> struct ConvGate {
  using Scalar = S;
  using Matrix = Eigen::Matrix<S, Dynamic, Dynamic>;
  static constexpr std::string_view name = "ConvGate";

  Matrix weight;
  Eigen::Matrix<S, Dynamic, 1> bias;
  static constexpr auto names = fw::names("weight", "bias");

  struct Trace {
    Matrix patches, gate, dgate, dpatches;
  };

  /// Zero until initialised or loaded.
  explicit ConvGate(Index d) {
    detail::check_size<Dynamic>(name, "d", d);
    weight.setZero(d, 3 * d);
    bias.setZero(d);
  }

  /// Uniform in ±1/√(3d), weight and bias, as PyTorch does.
  template <class Generator> void initialise(Generator& random) {
    const double bound = 1 / std::sqrt(static_cast<double>(weight.cols()));
    fill_uniform(random, bound, weight, bias);
  }

  Index inputs() const { return weight.rows(); }
  /// The columns of the gated chunk.
  Index length(Index tokens) const { return tokens; }
  void forward(Input<S> x, Output<S> y, Trace& trace) const {
    detail::check_gate(*this, x, "y", y.rows(), y.cols());
    trace.patches.setZero(weight.cols(), x.cols());
    for_each_tap(x.cols(), [&](Index from, Index to, Index tap) {
      for (Index i = 0; i < x.rows(); ++i) trace.patches(3 * i + tap, to) = x(i, from);
    });
    trace.gate = bias.replicate(1, x.cols());
    detail::add_product(trace.gate, weight, trace.patches, detail::one_block);
    detail::gate<S>(x, trace.gate, y);
  }

  /// dx overwritten, grad accumulated.
  void backward(Input<S> x, Trace& trace, Input<S> dy, Output<S> dx, ConvGate& grad) const {
    detail::check_gate_backward(*this, x, trace.gate.cols(), dy, dx, grad);
    trace.dgate.resize(x.rows(), x.cols());
    detail::gate_vjp<S>(x, trace.gate, dy, trace.dgate);
    dx = dy.cwiseProduct(trace.gate);
    detail::add_product(grad.weight, trace.dgate, trace.patches.transpose(), detail::one_block);
    grad.bias += trace.dgate.rowwise().sum();
    trace.dpatches.resize(weight.cols(), x.cols());
    detail::set_product(trace.dpatches, weight.transpose(), trace.dgate, detail::one_block);
    for_each_tap(x.cols(), [&](Index from, Index to, Index tap) {
      for (Index i = 0; i < x.rows(); ++i) dx(i, from) += trace.dpatches(3 * i + tap, to);
    });
  }

 private:
  // Calls f(from, to, tap) for every token `from` in the patch of token `to`: taps 0, 1, 2 are
  // x_{l−1}, x_l, x_{l+1}.
  template <class F> static void for_each_tap(Index steps, const F& f) {
    for (Index to = 0; to < steps; ++to)
      for (Index tap = 0; tap < 3; ++tap)
        if (const Index from = to + tap - 1; from >= 0 && from < steps) f(from, to, tap);
  }
};

/// A gate by an affine map over time, for chunks of one length L.
///
///     y_l = x_l ⊙ sigmoid(Σ_i w_li x_i + b_l)
///
/// Shapes: x, y d×L, weight L×L, bias L. Cost: 2 d L flops per token. Throws std::invalid_argument
/// for a chunk of another length.
template <class S> struct AffineGate {
  using Scalar = S;
  using Matrix = Eigen::Matrix<S, Dynamic, Dynamic>;
  static constexpr std::string_view name = "AffineGate";

  Matrix weight;
  Eigen::Matrix<S, Dynamic, 1> bias;
  static constexpr auto names = fw::names("weight", "bias");

  struct Trace {
    Matrix gate, dgate;
  };

  /// Zero until initialised or loaded.
  explicit AffineGate(Index length) {
    detail::check_size<Dynamic>(name, "length", length);
    weight.setZero(length, length);
    bias.setZero(length);
  }

  /// Uniform in ±1/√L, weight and bias, as PyTorch does.
  template <class Generator> void initialise(Generator& random) {
    const double bound = 1 / std::sqrt(static_cast<double>(bias.size()));
    fill_uniform(random, bound, weight, bias);
  }

  /// The columns of the gated chunk. Throws std::invalid_argument unless the chunk has as many as
  /// the gate.
  Index length(Index tokens) const {
    if (tokens != bias.size())
      detail::throw_mismatch(name, "x", tokens, "columns", bias.size(), "the gate");
    return tokens;
  }
  void forward(Input<S> x, Output<S> y, Trace& trace) const {
    detail::check_gate(*this, x, "y", y.rows(), y.cols());
    trace.gate = bias.transpose().replicate(x.rows(), 1);
    detail::add_product(trace.gate, x, weight.transpose(), detail::one_block);
    detail::gate<S>(x, trace.gate, y);
  }

  /// dx overwritten, grad accumulated.
  void backward(Input<S> x, Trace& trace, Input<S> dy, Output<S> dx, AffineGate& grad) const {
    detail::check_gate_backward(*this, x, trace.gate.cols(), dy, dx, grad);
    trace.dgate.resize(x.rows(), x.cols());
    detail::gate_vjp<S>(x, trace.gate, dy, trace.dgate);
    dx = dy.cwiseProduct(trace.gate);
    detail::add_product(dx, trace.dgate, weight, detail::one_block);
    detail::add_product(grad.weight, trace.dgate.transpose(), x, detail::one_block);
    grad.bias += trace.dgate.colwise().sum().transpose();
  }
};

}  // namespace fw
