#include <fastweights/layers/attention/smoothing_gate.hpp>
#include <fastweights/layers/attention/strided_conv.hpp>

#include "support/layer_checks.hpp"

namespace {

using fw::Index;
using layer_checks::Complex;
using layer_checks::Matrix;
using layer_checks::random_matrix;
using layer_checks::relative_difference;

// Returns y. Checks its gradients against the complex step, and that a reused trace repeats y.
template <class G, class Z>
Matrix<double> check_gate(const G& gate, Z twin, const Matrix<double>& x) {
  fw::Random random(1);
  layer_checks::copy_parameters(gate, twin);
  typename G::Trace trace;
  typename Z::Trace ztrace;
  const Index out = gate.length(x.cols());
  const Matrix<double> dy = random_matrix(x.rows(), out, random);
  Matrix<double> y = Matrix<double>::Constant(x.rows(), out, NAN), again = y,
                 dx = Matrix<double>::Constant(x.rows(), x.cols(), NAN);
  gate.forward(x, y, trace);
  gate.forward(x, again, trace);
  CHECK(y == again);
  const G ones = layer_checks::ones_like(gate);
  G grad = ones;
  gate.backward(x, trace, dy, dx, grad);
  Matrix<Complex> zx = x.cast<Complex>(), zy(x.rows(), out);
  const auto loss = [&]() -> Complex {
    twin.forward(zx, zy, ztrace);
    return (zy.array() * dy.array()).sum();
  };
  loss();
  CHECK(relative_difference(zy.real(), y) <= 1e-13);
  CHECK(layer_checks::gradient_error(zx, dx, loss) <= 1e-11);
  fw::for_each_parameter(
      [&](const std::string& path, auto& z, const auto& g, const auto& start) {
        INFO(path);
        CHECK(layer_checks::gradient_error(z, (g - start).eval(), loss) <= 1e-11);
      },
      twin, grad, ones);
  return y;
}

template <class G> G random_gate(G gate) {
  fw::Random random(2);
  layer_checks::randomise(gate, random);
  return gate;
}

double sigmoid(double z) { return 1 / (1 + std::exp(-z)); }

TEST_CASE("NoGate: y = x", "[layers][gate]") {
  fw::Random random(3);
  const Matrix<double> x = random_matrix(3, 5, random);
  CHECK(check_gate(fw::NoGate<double>(), fw::NoGate<Complex>(), x) == x);
}

TEST_CASE("ConvGate: the equation and its gradients", "[layers][gate]") {
  fw::Random random(4);
  for (const Index d : {1, 4})
    for (const Index length : {1, 2, 3, 8}) {
      const auto gate = random_gate(fw::ConvGate<double>(d));
      const Matrix<double> x = random_matrix(d, length, random);
      const Matrix<double> y = check_gate(gate, fw::ConvGate<Complex>(d), x);
      Matrix<double> expected(d, length);
      for (Index l = 0; l < length; ++l)
        for (Index i = 0; i < d; ++i) {
          double z = gate.bias[i];
          for (Index j = 0; j < d; ++j)
            for (Index tap = -1; tap <= 1; ++tap)
              if (l + tap >= 0 && l + tap < length)
                z += gate.weight(i, 3 * j + tap + 1) * x(j, l + tap);
          expected(i, l) = x(i, l) * sigmoid(z);
        }
      CHECK(relative_difference(y, expected) <= 1e-14);
    }
}

TEST_CASE("AffineGate: the equation and its gradients", "[layers][gate]") {
  fw::Random random(5);
  for (const Index length : {1, 2, 7}) {
    const auto gate = random_gate(fw::AffineGate<double>(length));
    const Matrix<double> x = random_matrix(3, length, random);
    const Matrix<double> y = check_gate(gate, fw::AffineGate<Complex>(length), x);
    Matrix<double> expected(3, length);
    for (Index l = 0; l < length; ++l)
      for (Index i = 0; i < 3; ++i)
        expected(i, l) = x(i, l) * sigmoid(gate.weight.row(l).dot(x.row(i)) + gate.bias[l]);
    CHECK(relative_difference(y, expected) <= 1e-14);
  }
}

TEST_CASE("StridedConv: the equation and its gradients, for any length", "[layers][gate]") {
  fw::Random random(6);
  for (const Index rate : {1, 2, 3})
    for (const Index length : {1, 2, 6, 7}) {
      const auto conv = random_gate(fw::StridedConv<double>(4, rate));
      const Matrix<double> x = random_matrix(4, length, random);
      const Matrix<double> y = check_gate(conv, fw::StridedConv<Complex>(4, rate), x);
      REQUIRE(y.cols() == (length + rate - 1) / rate);
      Matrix<double> expected(4, y.cols());
      for (Index j = 0; j < y.cols(); ++j)
        for (Index i = 0; i < 4; ++i) {
          expected(i, j) = conv.bias[i];
          for (Index k = 0; k < 4; ++k)
            for (Index c = 0; c < rate && rate * j + c < length; ++c)
              expected(i, j) += conv.weight(i, rate * k + c) * x(k, rate * j + c);
        }
      CHECK(relative_difference(y, expected) <= 1e-14);
    }
}

TEST_CASE("StridedConv: starts as the mean of a patch", "[layers][gate]") {
  fw::StridedConv<double> conv(3, 2);
  fw::Random random(7);
  fw::initialise(conv, random);
  const Matrix<double> x = random_matrix(3, 4, random);
  Matrix<double> y(3, 2);
  fw::StridedConv<double>::Trace trace;
  conv.forward(x, y, trace);
  CHECK(relative_difference(y.col(0), x.leftCols(2).rowwise().mean()) <= 1e-15);
  CHECK(relative_difference(y.col(1), x.rightCols(2).rowwise().mean()) <= 1e-15);
}

TEST_CASE("gates: sizes out of range and chunks of another length are refused", "[layers][gate]") {
  CHECK_THROWS_WITH(fw::ConvGate<double>(0), "ConvGate: d is 0, expected at least 1");
  CHECK_THROWS_WITH(fw::AffineGate<double>(0), "AffineGate: length is 0, expected at least 1");
  CHECK_THROWS_WITH(fw::StridedConv<double>(0, 1), "StridedConv: d is 0, expected at least 1");
  CHECK_THROWS_WITH(fw::StridedConv<double>(1, 0), "StridedConv: rate is 0, expected at least 1");
  Matrix<double> x = Matrix<double>::Ones(2, 3), y = x;
  fw::AffineGate<double>::Trace trace;
  CHECK_THROWS_WITH(fw::AffineGate<double>(4).forward(x, y, trace),
                    "AffineGate: x has 3 columns, the gate expects 4");
}

// Wrong sizes, for gates of 3 rows with `columns` output columns for 4 tokens.
template <class Gate> void check_gate_refusals(const Gate& gate, Index columns) {
  const std::string name(Gate::name);
  Matrix<double> x = Matrix<double>::Ones(3, 4), tall = Matrix<double>::Ones(4, 4);
  Matrix<double> y = Matrix<double>::Ones(3, columns), wide = Matrix<double>::Ones(3, columns + 1),
                 low = Matrix<double>::Ones(2, columns), dx = x;
  typename Gate::Trace trace;
  Gate grad = fw::zero_gradient(gate);
  CHECK_THROWS_WITH(
      gate.backward(x, trace, y, dx, grad),
      name + ": dy has " + std::to_string(columns) + " columns, the last pass expects 0");
  CHECK_THROWS_WITH(gate.forward(x, wide, trace), name + ": y has " + std::to_string(columns + 1) +
                                                      " columns, the gate expects " +
                                                      std::to_string(columns));
  CHECK_THROWS_WITH(gate.forward(x, low, trace), name + ": y has 2 rows, the gate expects 3");
  CHECK(y.isOnes(0));
  gate.forward(x, y, trace);
  CHECK_THROWS_WITH(gate.backward(x, trace, low, dx, grad),
                    name + ": dy has 2 rows, the gate expects 3");
  CHECK_THROWS_WITH(gate.backward(x, trace, y, tall, grad),
                    name + ": dx has 4 rows, the layer expects 3");
  grad.weight.resize(1, 1);
  CHECK_THROWS_WITH(gate.backward(x, trace, y, dx, grad),
                    Catch::Matchers::ContainsSubstring(name + ": the parameters of grad differ"));
  CHECK(dx.isOnes(0));
  if constexpr (requires { gate.inputs(); })
    CHECK_THROWS_WITH(gate.forward(tall, y, trace), name + ": x has 4 rows, the layer expects 3");
}

TEST_CASE("gates: views that do not fit are refused by name", "[layers][gate]") {
  check_gate_refusals(fw::ConvGate<double>(3), 4);
  check_gate_refusals(fw::AffineGate<double>(4), 4);
  check_gate_refusals(fw::StridedConv<double>(3, 3), 2);
}

TEST_CASE("gates are between 0 and 1 once initialised", "[layers][gate]") {
  fw::Random random(8);
  fw::ConvGate<double> conv(4);
  fw::AffineGate<double> affine(6);
  fw::initialise(conv, random);
  fw::initialise(affine, random);
  CHECK(conv.weight.cwiseAbs().maxCoeff() <= 1 / std::sqrt(12.0));
  CHECK(affine.weight.cwiseAbs().maxCoeff() <= 1 / std::sqrt(6.0));
  const Matrix<double> x = Matrix<double>::Ones(4, 6);
  for (Matrix<double> y : {check_gate(conv, fw::ConvGate<Complex>(4), x),
                           check_gate(affine, fw::AffineGate<Complex>(6), x)})
    CHECK((y.minCoeff() > 0 && y.maxCoeff() < 1));
}

}  // namespace
