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

/// \file
/// The checks that every operation passes, alone in a small network: gradients that are those of
/// the complex step, the same result for any split of a sequence and for any batch, tokens that are
/// taken back without a trace, and float near double.

namespace operation_checks {

using fw::Index;
using fw::networks::Builder;
using fw::networks::Matrix;
using fw::networks::Positions;
using fw::networks::State;
using fw::networks::Value;
using Net = fw::networks::Network<double>;

using Complex = std::complex<double>;
using ComplexNet = fw::networks::Network<Complex>;
/// The scalar of a value.
template <class X> using ScalarOf = typename std::decay_t<X>::Scalar;

/// Function of the input of a network: in double, in complex numbers for its gradients, and in
/// float.
class Function {
 public:
  template <class F>
  requires(!std::is_same_v<F, Function>) Function(const F& f) : real_(f) {
    if constexpr (std::is_invocable_v<const F&, const Value<Complex>&>) complex_ = f;
    if constexpr (std::is_invocable_v<const F&, const Value<float>&>) float_ = f;
  }
  Value<double> operator()(const Value<double>& x) const { return real_(x); }
  /// Fails a test whose function takes real numbers only.
  Value<Complex> operator()(const Value<Complex>& x) const {
    REQUIRE(complex_);
    return complex_(x);
  }
  Value<float> operator()(const Value<float>& x) const { return float_(x); }
  /// True for a function that takes a value of any scalar.
  bool has_float() const { return float_ != nullptr; }

 private:
  std::function<Value<double>(const Value<double>&)> real_;
  std::function<Value<Complex>(const Value<Complex>&)> complex_;
  std::function<Value<float>(const Value<float>&)> float_;
};

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// Entries that are not near 0, where some functions have a kink.
Matrix<double> random_matrix(Index rows, Index cols, fw::Random& random);

/// A network of f, whose weights all differ from their initial values.
Net network_of(Index rows, const Function& f);

/// The outputs of a pass, over buffers full of NaN.
template <class S>
Matrix<S> run(const fw::networks::Network<S>& network, State& state,
              const std::type_identity_t<Matrix<S>>& x,
              typename fw::networks::Network<S>::Trace& trace, fw::Pass pass = fw::Pass::infer) {
  Matrix<S> y = Matrix<S>::Constant(network.outputs(), x.cols(), S(not_a_number));
  network.forward(state, x, y, trace, pass);
  return y;
}

extern template Matrix<double> run(const Net&, State&, const Matrix<double>&, Net::Trace&,
                                   fw::Pass);
extern template Matrix<Complex> run(const ComplexNet&, State&, const Matrix<Complex>&,
                                    ComplexNet::Trace&, fw::Pass);

/// The network of f in other numbers, with the weights of a network of double.
template <class S>
fw::networks::Network<S> network_with_weights_of(const Net& network, const Function& f) {
  Builder<S> builder;
  fw::networks::Network<S> twin = builder.build(f(builder.input(network.inputs())));
  for (std::size_t i = 0; i < twin.weights.size(); ++i)
    twin.weights[i].value = network.weights[i].value.template cast<S>();
  return twin;
}
inline ComplexNet complex_network_of(const Net& network, const Function& f) {
  return network_with_weights_of<Complex>(network, f);
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

void check_equal(const Matrix<double>& given, const Matrix<double>& expected, double limit);

/// A weight of a network, or of its gradient.
inline Matrix<double>& weight(Net& network, const std::string& name) {
  return network.weight(name).value;
}

/// The names of all weights, one a line.
inline std::string names_of_weights(const Net& network) {
  std::string names;
  for (const auto& each : network.weights) names += each.name + "\n";
  return names;
}

/// The record of type T that is the state of the only operation with one.
template <class T> T& record_of(State& state) {
  REQUIRE(state.members.size() == 1);
  const fw::detail::Object object = state.members[0].part->object();
  REQUIRE(object.type == &fw::detail::object_type<T>);
  return *static_cast<T*>(object.address);
}

/// Outputs and gradients of a train pass.
template <class S> struct TrainedIn {
  Matrix<S> y, dx;
  fw::networks::Network<S> grad;
};
using Trained = TrainedIn<double>;

/// A train pass, and its gradients, over buffers full of NaN.
template <class S>
TrainedIn<S> train(const fw::networks::Network<S>& network, State& state,
                   const std::type_identity_t<Matrix<S>>& x,
                   const std::type_identity_t<Matrix<S>>& dy,
                   typename fw::networks::Network<S>::Trace& trace) {
  TrainedIn<S> result{run(network, state, x, trace, fw::Pass::train),
                      Matrix<S>::Constant(x.rows(), x.cols(), S(not_a_number)),
                      fw::zero_gradient(network)};
  network.backward(x, trace, dy, result.dx, result.grad);
  return result;
}

extern template Trained train(const Net&, State&, const Matrix<double>&, const Matrix<double>&,
                              Net::Trace&);

/// Gradients of Σ dy ⊙ y from a used state, for two sequences. `grad` accumulates, dx does not. f
/// is the function of the network.
void check_gradients(const Net& network, const Function& f, Index steps = 3);

/// The gradient of the sum of all outputs by x.
Matrix<double> input_gradient(const Net& network, const Matrix<double>& x);

/// Tokens first … first + count − 1 of every sequence.
Matrix<double> tokens(const Matrix<double>& x, Index sequences, Index first, Index count);

/// Outputs, gradients and the last state of sequences in pieces, each piece in a process of its
/// own.
struct InPieces {
  Index sequences;
  Matrix<double> y, dx;
  Net grad;
  State last;

  InPieces(const Net& network, Index count, const Matrix<double>& x, const Matrix<double>& dy,
           const std::vector<Index>& lengths);
  /// Outputs and gradients are those of other pieces.
  void check_same(const InPieces& whole) const;
};

/// A sequence in pieces gives what it gives at once, and two sequences what each gives alone.
void check_streaming(const Net& network);

/// Calls f(numbers) for every array of a state, or of a part of one, with that scalar.
template <class S, class F> void for_each_array(const fw::detail::Object& part, const F& f) {
  if (part.type->leaf) {
    const fw::detail::Leaf leaf = part.type->leaf(part.address);
    if (leaf.scalar == fw::detail::scalar_kind<S>()) f(leaf.entries<S>());
  } else if (part.type->count) {
    for (std::size_t i = 0; i < part.type->count(part.address); ++i)
      for_each_array<S>(part.type->part(part.address, i), f);
  }
}

/// Appends the real numbers of a state, or of a part of one.
void append_numbers(const fw::detail::Object& part, std::vector<double>& numbers);
/// The real numbers of a state, in one column.
Matrix<double> numbers_of(State state);

/// Sets the integer at this path of a state.
void set_number(State& state, const std::string& path, std::int64_t value);

/// The gradient of a used state of two sequences is that of the complex step; or it is refused.
void check_state_gradient(const Net& network, const Function& f, Index steps = 3);

/// Sequences of equal length give together what each gives alone, from used states: outputs,
/// gradients and the states.
void check_batch(const Net& network, Index sequences, Index steps);

/// The gradients of sequences of different lengths are those of each alone, and their sum.
void check_ragged_gradients(const Net& network, fw::Random& random);

/// Tokens that were taken back have never been: every sequence continues as its text does that was
/// read at once, after passes of any length.
void check_roll_back(const Net& network, fw::Random& random);

void check_operation(Index rows, const Function& f);

/// For 1, 3 and 17 rows.
void check_operation(const Function& f);

/// The value of f for one token.
Matrix<double> value_of(const Function& f, const Matrix<double>& x);

}  // namespace operation_checks
