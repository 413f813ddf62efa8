#pragma once

#include <complex>
#include <fastweights/layers/layer.hpp>
#include <fastweights/math/random.hpp>
#include <limits>
#include <vector>

#include "support/catch.hpp"
#include "support/largest_entry.hpp"

/// \file
/// The checks that every layer passes: exact gradients, equal results in any split of a sequence,
/// and wrong sizes refused without side effects.

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

/// Checks the gradients of Σ dy ⊙ y by every parameter and by x, from a used state, against the
/// complex step on `twin`, the same layer in complex numbers.
template <class L, class Z> void check_gradients(const L& layer, Z twin, Index steps) {
  fw::Random random(7);
  copy_parameters(layer, twin);
  const Matrix<double> before = random_matrix(layer.inputs(), 3, random);
  const Matrix<double> x = random_matrix(layer.inputs(), steps, random);
  const Matrix<double> dy = random_matrix(layer.outputs(), steps, random);

  Matrix<double> y(layer.outputs(), steps), y_before(layer.outputs(), 3);
  auto state = layer.initial_state();
  typename L::Trace trace;
  layer.forward(state, before, y_before, trace);
  layer.forward(state, x, y, trace, fw::Pass::train);
  Matrix<double> dx = Matrix<double>::Constant(x.rows(), steps, NAN);  // overwritten
  L grad = layer;  // accumulated, so it starts from nonzero values
  layer.backward(x, trace, dy, dx, grad);

  Matrix<Complex> zx = x.cast<Complex>(), zy(layer.outputs(), steps), zbefore(layer.outputs(), 3);
  auto zinitial = twin.initial_state();
  typename Z::Trace ztrace;
  twin.forward(zinitial, before.cast<Complex>().eval(), zbefore, ztrace);
  const auto initial = zinitial;
  const auto loss = [&]() -> Complex {
    auto zstate = initial;  // a constant, independent of the changed parameter
    twin.forward(zstate, zx, zy, ztrace);
    return zy.cwiseProduct(dy.cast<Complex>()).sum();
  };
  loss();
  CHECK(relative_difference(zy.real(), y) <= 1e-12);
  INFO("steps " << steps);
  CHECK(gradient_error(zx, dx, loss) <= 1e-10);
  fw::for_each_parameter(
      [&](const std::string& path, auto& z, const auto& g, const auto& start) {
        INFO(path);
        CHECK(gradient_error(z, (g - start).eval(), loss) <= 1e-10);
      },
      twin, grad, layer);
}

/// Checks that a sequence in one pass, token by token and in pieces gives the same y.
template <class L> void check_streaming(const L& layer, Index steps) {
  fw::Random random(8);
  const Matrix<double> x = random_matrix(layer.inputs(), steps, random);
  Matrix<double> whole(layer.outputs(), steps), parts(layer.outputs(), steps);
  typename L::Trace trace;
  auto state = layer.initial_state();
  layer.forward(state, x, whole, trace, fw::Pass::train);
  for (Index piece : {Index(1), Index(2), Index(5)}) {
    parts.setConstant(NAN);
    state = layer.initial_state();
    for (Index t = 0; t < steps; t += piece) {
      const Index n = std::min(piece, steps - t);
      layer.forward(state, x.middleCols(t, n), parts.middleCols(t, n), trace);
    }
    INFO("pieces of " << piece << " in " << steps << " steps");
    CHECK(relative_difference(parts, whole) <= 1e-12);
  }
}

/// Whether all parameters of two layers, or all arrays of two states, are equal.
template <class L> bool same_parameters(const L& a, const L& b) {
  bool same = true;
  fw::for_each_parameter(
      [&](const std::string&, const auto& p, const auto& q) { same = same && p == q; }, a, b);
  return same;
}

/// Checks that wrong sizes are refused by name, with y, dx, grad and a used state unchanged.
template <class L> void check_refusals(const L& layer) {
  using Catch::Matchers::ContainsSubstring;
  const std::string name(L::name);
  const Index in = layer.inputs(), out = layer.outputs();
  Matrix<double> x = Matrix<double>::Zero(in, 4), tall = Matrix<double>::Zero(in + 1, 4);
  Matrix<double> y = Matrix<double>::Ones(out, 4), wide = Matrix<double>::Ones(out, 5);
  Matrix<double> no_x(in, 0), no_y(out, 0), dx = Matrix<double>::Ones(in, 4);
  auto state = layer.initial_state();
  typename L::Trace trace;
  Matrix<double> y_before = y;
  layer.forward(state, Matrix<double>::Constant(in, 4, 0.5).eval(), y_before, trace);
  const auto before = state;
  CHECK_THROWS_WITH(layer.forward(state, tall, y, trace),
                    ContainsSubstring(name + ": x has " + std::to_string(in + 1) +
                                      " rows, the layer expects " + std::to_string(in)));
  CHECK_THROWS_WITH(layer.forward(state, x, wide, trace),
                    ContainsSubstring(name + ": y has 5 columns, the sequence expects 4"));
  if (name == "CausalConv")
    CHECK_NOTHROW(layer.forward(state, no_x, no_y, trace));
  else
    CHECK_THROWS_WITH(layer.forward(state, no_x, no_y, trace),
                      ContainsSubstring(name + ": x has no tokens, the layer expects at least 1"));
  CHECK((y.array() == 1).all());
  CHECK((wide.array() == 1).all());
  CHECK(same_parameters(state, before));

  L grad = layer;
  layer.forward(state, x, y, trace, fw::Pass::train);
  CHECK_THROWS_WITH(layer.backward(x, trace, wide, dx, grad),
                    ContainsSubstring(name + ": dy has 5 columns"));
  CHECK_THROWS_WITH(layer.backward(x, trace, y, tall, grad),
                    ContainsSubstring(name + ": dx has " + std::to_string(in + 1) + " rows"));
  CHECK(same_parameters(grad, layer));
  L itself = layer;
  CHECK_THROWS_WITH(itself.backward(x, trace, y, dx, itself),
                    ContainsSubstring(name + ": grad is the model itself"));
  CHECK(same_parameters(itself, layer));
  fw::for_each_parameter([](const std::string&, auto& g) { g.resize(0, g.cols() > 1 ? 0 : 1); },
                         grad);
  if (fw::parameter_count(layer) > 0)
    CHECK_THROWS_WITH(layer.backward(x, trace, y, dx, grad),
                      ContainsSubstring(name + ": the parameters of grad differ"));
  if constexpr (requires { trace.trained; }) {
    layer.forward(state, x, y, trace, fw::Pass::infer);
    CHECK_THROWS_WITH(
        layer.backward(x, trace, y, dx, grad),
        ContainsSubstring(name + ": backward without a train pass, expected forward"));
  }
  CHECK((dx.array() == 1).all());
}

/// Checks that results over arguments are refused by name and change nothing, or are exact where
/// the layer says `in_place`.
template <class L> void check_overlaps(const L& layer) {
  using Catch::Matchers::ContainsSubstring;
  const std::string name(L::name);
  const Index in = layer.inputs(), out = layer.outputs(), rows = std::max(in, out);
  Matrix<double> x = Matrix<double>::Random(in, 4), y(out, 4), dx(in, 4);
  const Matrix<double> dy = Matrix<double>::Random(out, 4);
  auto state = layer.initial_state(), in_place_state = state;
  typename L::Trace trace, other;
  L grad = fw::zero_gradient(layer);
  layer.forward(state, x, y, trace, fw::Pass::train);
  layer.backward(x, trace, dy, dx, grad);

  Matrix<double> shared = Matrix<double>::Zero(rows, 5);
  const auto refused = [&](const auto& call, const std::string& text) {
    const Matrix<double> before = shared;
    CHECK_THROWS_WITH(call(), ContainsSubstring(name + ": " + text));
    CHECK(shared == before);
  };
  shared.topLeftCorner(in, 4) = x;
  refused(
      [&] {
        layer.forward(in_place_state, shared.topLeftCorner(in, 4), shared.block(0, 1, out, 4),
                      other);
      },
      "y overlaps x");
  refused(
      [&] {
        layer.backward(shared.topLeftCorner(in, 4), trace, dy, shared.block(0, 1, in, 4), grad);
      },
      "dx overlaps x");
  shared.topLeftCorner(out, 4) = dy;
  refused(
      [&] {
        layer.backward(x, trace, shared.topLeftCorner(out, 4), shared.block(0, 1, in, 4), grad);
      },
      "dx overlaps dy");
  if constexpr (fw::detail::in_place<L>()) {
    Matrix<double> over = x, dover = dy;
    layer.forward(in_place_state, over, over, other);
    CHECK(over == y);
    layer.backward(x, trace, dover, dover, grad);
    CHECK(dover == dx);
  } else {
    shared.topLeftCorner(in, 4) = x;
    refused(
        [&] {
          layer.forward(in_place_state, shared.topLeftCorner(in, 4), shared.topLeftCorner(out, 4),
                        other);
        },
        "y overlaps x");
    refused(
        [&] {
          layer.backward(x, trace, shared.topLeftCorner(out, 4), shared.topLeftCorner(in, 4), grad);
        },
        "dx overlaps dy");
  }
}

/// All checks. `twin` is the same layer in complex numbers, with any parameters.
template <class L, class Z>
void check_layer(L layer, const Z& twin, const std::vector<Index>& lengths) {
  STATIC_REQUIRE(fw::Layer<L>);
  fw::Random random(9);
  randomise(layer, random);
  for (Index steps : lengths) check_gradients(layer, twin, steps);
  check_streaming(layer, 17);
  check_refusals(layer);
  check_overlaps(layer);
}

/// The dotted names of a layer's parameters, in order, one per line.
template <class L> std::string parameter_names(const L& layer) {
  std::string names;
  fw::for_each_parameter([&](const std::string& path, const auto&) { names += path + "\n"; },
                         layer);
  return names;
}

}  // namespace layer_checks
