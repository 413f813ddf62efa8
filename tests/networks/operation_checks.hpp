#pragma once

#include <complex>
#include <fastweights/math/random.hpp>
#include <fastweights/networks/operations.hpp>
#include <functional>
#include <limits>
#include <type_traits>
#include <vector>

#include "support/catch.hpp"
#include "support/largest_entry.hpp"
#include "support/queue_relay.hpp"

/// \file
/// The checks that every operation passes, alone in a small network: gradients that are those of
/// the complex step, and the same result for any split of a sequence and for any batch.

namespace operation_checks {

using fw::Index;
using fw::networks::Builder;
using fw::networks::Matrix;
using fw::networks::State;
using fw::networks::Value;
using Net = fw::networks::Network<double>;

using Complex = std::complex<double>;
using ComplexNet = fw::networks::Network<Complex>;
/// The scalar of a value.
template <class X> using ScalarOf = typename std::decay_t<X>::Scalar;

/// Function of the input of a network, in real numbers and, for its gradients, in complex ones.
class Function {
 public:
  template <class F>
  requires(!std::is_same_v<F, Function>) Function(const F& f) : real_(f) {
    if constexpr (std::is_invocable_v<const F&, const Value<Complex>&>) complex_ = f;
  }
  Value<double> operator()(const Value<double>& x) const { return real_(x); }
  /// Fails a test whose function takes real numbers only.
  Value<Complex> operator()(const Value<Complex>& x) const {
    REQUIRE(complex_);
    return complex_(x);
  }

 private:
  std::function<Value<double>(const Value<double>&)> real_;
  std::function<Value<Complex>(const Value<Complex>&)> complex_;
};

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// Entries that are not near 0, where some functions have a kink.
inline Matrix<double> random_matrix(Index rows, Index cols, fw::Random& random) {
  Matrix<double> m(rows, cols);
  random.fill(m);
  return m.unaryExpr([](double x) { return x + std::copysign(0.05, x); });
}

/// A network of f, whose weights all differ from their initial values.
inline Net network_of(Index rows, const Function& f) {
  Builder<double> builder;
  Net network = builder.build(f(builder.input(rows)));
  fw::Random random(5);
  fw::initialise(network, random);
  for (auto& weight : network.weights)
    weight.value += 0.3 * random_matrix(weight.value.rows(), weight.value.cols(), random);
  return network;
}

/// The outputs of a pass, over buffers full of NaN.
template <class S>
Matrix<S> run(const fw::networks::Network<S>& network, State& state,
              const std::type_identity_t<Matrix<S>>& x,
              typename fw::networks::Network<S>::Trace& trace, fw::Pass pass = fw::Pass::infer) {
  Matrix<S> y = Matrix<S>::Constant(network.outputs(), x.cols(), S(not_a_number));
  network.forward(state, x, y, trace, pass);
  return y;
}

/// The network of f in complex numbers, with the weights of another one.
inline ComplexNet complex_network_of(const Net& network, const Function& f) {
  Builder<Complex> builder;
  ComplexNet twin = builder.build(f(builder.input(network.inputs())));
  for (std::size_t i = 0; i < twin.weights.size(); ++i)
    twin.weights[i].value = network.weights[i].value.cast<Complex>();
  return twin;
}

/// The derivative of `loss` by every entry of an array, by the complex step: Squire & Trapp 1998.
template <class Loss> Matrix<double> derivatives(Matrix<Complex>& array, const Loss& loss) {
  constexpr double h = 1e-30;
  Matrix<double> gradient(array.rows(), array.cols());
  for (Index i = 0; i < array.size(); ++i) {
    array.data()[i] += Complex(0, h);
    gradient.data()[i] = loss().imag() / h;
    array.data()[i] = array.data()[i].real();
  }
  return gradient;
}

inline void check_equal(const Matrix<double>& given, const Matrix<double>& expected, double limit) {
  REQUIRE(given.rows() == expected.rows());
  REQUIRE(given.cols() == expected.cols());
  CHECK(largest_entry(given - expected) <= limit * std::max(largest_entry(expected), 1.0));
}

/// Gradients of Σ dy ⊙ y from a used state, for two sequences. `grad` accumulates, dx does not. f
/// is the function of the network.
inline void check_gradients(const Net& network, const Function& f) {
  constexpr Index sequences = 2, steps = 3;
  fw::Random random(7);
  Matrix<double> x = random_matrix(network.inputs(), sequences * steps, random);
  const Matrix<double> dy = random_matrix(network.outputs(), x.cols(), random);
  const Matrix<double> before = random_matrix(network.inputs(), sequences * 2, random);
  State state = network.initial_state(sequences);
  Net::Trace trace;
  run(network, state, before, trace);
  run(network, state, x, trace, fw::Pass::train);
  Matrix<double> dx = Matrix<double>::Constant(x.rows(), x.cols(), not_a_number);
  Net grad = network, unused = network;
  network.backward(x, trace, dy, dx, unused);  // makes the buffers of gradients
  for (auto& gradient : trace.gradients) gradient.setConstant(not_a_number);
  network.backward(x, trace, dy, dx, grad);

  ComplexNet twin = complex_network_of(network, f);
  ComplexNet::Trace complex_trace;
  State used = twin.initial_state(sequences);
  run(twin, used, Matrix<Complex>(before.cast<Complex>()), complex_trace);
  Matrix<Complex> complex_x = x.cast<Complex>();
  const auto loss = [&] {
    State start = used;
    return run(twin, start, complex_x, complex_trace).cwiseProduct(dy.cast<Complex>()).sum();
  };
  check_equal(dx, derivatives(complex_x, loss), 1e-10);
  for (std::size_t i = 0; i < network.weights.size(); ++i) {
    INFO(network.weights[i].name);
    check_equal(grad.weights[i].value - network.weights[i].value,
                derivatives(twin.weights[i].value, loss), 1e-10);
  }
}

/// The gradient of the sum of all outputs by x.
inline Matrix<double> input_gradient(const Net& network, const Matrix<double>& x) {
  State state = network.initial_state();
  Net::Trace trace;
  const Matrix<double> y = run(network, state, x, trace, fw::Pass::train);
  const Matrix<double> dy = Matrix<double>::Ones(y.rows(), y.cols());
  Matrix<double> dx = Matrix<double>::Constant(x.rows(), x.cols(), not_a_number);
  Net grad = network;
  network.backward(x, trace, dy, dx, grad);
  return dx;
}

/// Tokens first … first + count − 1 of every sequence.
inline Matrix<double> tokens(const Matrix<double>& x, Index sequences, Index first, Index count) {
  const Index steps = x.cols() / sequences;
  Matrix<double> some(x.rows(), sequences * count);
  for (Index b = 0; b < sequences; ++b)
    some.middleCols(b * count, count) = x.middleCols(b * steps + first, count);
  return some;
}

/// Every piece in a process of its own.
inline void check_relayed(const Net& network, Index sequences, const Matrix<double>& x,
                          const Matrix<double>& whole, Index piece) {
  const Index steps = x.cols() / sequences;
  QueueRelay relay(static_cast<std::size_t>((steps + piece - 1) / piece));
  for (Index t = 0; t < steps; t += piece) {
    const Index count = std::min(piece, steps - t);
    relay.go_to(static_cast<std::size_t>(t / piece));
    Net::Trace trace;
    State state = network.initial_state(sequences);  // is received, but for the first piece
    check_equal(
        run(network, state, tokens(x, sequences, t, count), trace, fw::Pass::infer.over(relay)),
        tokens(whole, sequences, t, count), 1e-13);
    CHECK(state.position == t + count);
  }
  CHECK(relay.is_empty());
}

/// A sequence in pieces gives what it gives at once, and two sequences what each gives alone.
inline void check_streaming(const Net& network) {
  constexpr Index sequences = 2, steps = 7;
  fw::Random random(8);
  const Matrix<double> x = random_matrix(network.inputs(), sequences * steps, random);
  Net::Trace trace;
  State state = network.initial_state(sequences);
  const Matrix<double> whole = run(network, state, x, trace, fw::Pass::train);
  for (const Index piece : {1, 2, 5}) {
    INFO("pieces of " << piece);
    State in_pieces = network.initial_state(sequences);
    for (Index t = 0; t < steps; t += piece) {
      const Index count = std::min(piece, steps - t);
      check_equal(run(network, in_pieces, tokens(x, sequences, t, count), trace),
                  tokens(whole, sequences, t, count), 1e-13);
    }
    CHECK(in_pieces.position == steps);
    check_relayed(network, sequences, x, whole, piece);
  }
  for (Index b = 0; b < sequences; ++b) {
    State alone = network.initial_state();
    check_equal(run(network, alone, x.middleCols(b * steps, steps), trace),
                whole.middleCols(b * steps, steps), 1e-13);
  }
}

inline void check_operation(Index rows, const Function& f) {
  INFO("rows " << rows);
  const Net network = network_of(rows, f);
  check_streaming(network);
  check_gradients(network, f);
}

/// For 1, 3 and 17 rows.
inline void check_operation(const Function& f) {
  for (const Index rows : {1, 3, 17}) check_operation(rows, f);
}

/// What f gives for one token.
inline Matrix<double> value_of(const Function& f, const Matrix<double>& x) {
  Builder<double> builder;
  const Net network = builder.build(f(builder.input(x.rows())));
  State state = network.initial_state();
  Net::Trace trace;
  return run(network, state, x, trace);
}

}  // namespace operation_checks
