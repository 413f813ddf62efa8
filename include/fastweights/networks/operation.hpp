#pragma once

#include <fastweights/layers/symbols.hpp>
#include <fastweights/networks/state.hpp>
#include <fastweights/networks/streams.hpp>
#include <fastweights/networks/value.hpp>
#include <fastweights/networks/weight.hpp>
#include <memory>

/// \file
/// An operation computes one value of a network from others, for all tokens of a pass. It is const
/// and may be used by several threads; what it keeps between passes is in a state, and what it
/// keeps for backward in a trace. Your own operation is a class with `forward` and `backward`, and
/// a function that adds it to a builder.

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// The base class of the traces of operations.
struct OperationTrace {
  /// Traces are deleted through this base.
  virtual ~OperationTrace() = default;
  /// A number that the operation adds to the loss of the last train pass: see Network::penalty.
  virtual double penalty() const { return 0; }
};

template <class S> struct Operation;

/// An operation with the places of its inputs, output and parameters in the network.
template <class S> struct Node {
  std::shared_ptr<const Operation<S>> operation;  ///< what it computes
  std::vector<Slice> in;                          ///< the inputs
  Slice out;                                      ///< the output
  std::vector<std::size_t> weights;               ///< the indices of its parameters
  std::string path;                               ///< names its state, and the place in errors
  bool has_state = false;                         ///< whether it keeps something between passes
  // For a train plan: see plan_gradients.
  std::vector<std::size_t> zeroed;  ///< buffers whose gradient is 0 before its backward pass
  unsigned first = 0;               ///< bit i: the gradient of input i is written here first
};

/// The forward pass of one operation.
template <class S> struct Forward {
  const Node<S>& node;                    ///< the operation and its places
  const std::vector<Weight<S>>& weights;  ///< of the network
  std::vector<Matrix<S>>& values;         ///< the buffers
  StatePart* state;                       ///< the operation's own; null if none, and in backward
  OperationTrace* trace;                  ///< the operation's own; null if it has none
  Symbols ids;                            ///< of the tokens, if the network's input are symbols
  const Streams& streams;                 ///< the places of the tokens of every sequence
  bool train;                             ///< whether backward follows

  /// The i-th input.
  Input<S> in(std::size_t i = 0) const { return view<const S>(values, node.in[i]); }
  /// The output, to be overwritten.
  Output<S> out() const { return view<S>(values, node.out); }
  /// The i-th weight.
  const Matrix<S>& weight(std::size_t i = 0) const { return weights[node.weights[i]].value; }
  /// The i-th weight in quantised form, or null.
  const QuantisedMatrix<S>* quantised_weight(std::size_t i = 0) const {
    return weights[node.weights[i]].quantised.get();
  }
  /// B, the number of concatenated sequences.
  Index sequences() const { return streams.count(); }

  /// The operation's own state. Types are compared by address: a state does not cross to the copy
  /// of the library in another shared object.
  template <class T> T& own_state() const {
    const auto own = state == nullptr ? fw::detail::Object{} : state->object();
    if (own.type != &fw::detail::object_type<T>)  // also in programs without dynamic_cast
      fw::detail::throw_invalid({node.path, ": the state is that of another network"});
    return *static_cast<T*>(own.address);
  }
  /// The object that make_trace gave.
  template <class T> T& own_trace() const { return static_cast<T&>(*trace); }

  /// The rows of a buffer that a slice names.
  template <class T>
  static SequenceView<T, Dynamic> view(std::vector<Matrix<S>>& buffers, const Slice& slice) {
    Matrix<S>& buffer = buffers[slice.buffer];
    return {buffer.data() + slice.first, slice.rows, buffer.cols(), buffer.rows()};
  }
};

/// The backward pass of one operation: adds to the gradients of its inputs and parameters. An
/// operation that says `overwrites` gets gradients of inputs that hold nothing yet.
template <class S> struct Backward : Forward<S> {
  std::vector<Matrix<S>>& gradients;         ///< of the values, in the order of the buffers
  std::vector<Weight<S>>& weight_gradients;  ///< of the network
  StatePart* state_gradient = nullptr;       ///< see own_state_gradient; null if nobody asks

  /// The gradient of the state after the pass, to be replaced by that of the state before it. Null
  /// if nobody asks.
  template <class T> T* own_state_gradient() const {
    if (state_gradient == nullptr) return nullptr;
    return &static_cast<StateOfPart<T>&>(*state_gradient).value;
  }

  /// The gradient of the output.
  Input<S> dout() const { return this->template view<const S>(gradients, this->node.out); }
  /// The gradient of the i-th input, to be added to, unless it is the first.
  Output<S> din(std::size_t i = 0) const {
    return this->template view<S>(gradients, this->node.in[i]);
  }
  /// True if the gradient of the i-th input holds nothing yet, and is to be overwritten.
  bool is_first(std::size_t i = 0) const {
    return i < most_first && (this->node.first >> i & 1u) != 0;
  }
  /// Adds to the gradient of the i-th input, or overwrites it if it is the first.
  template <class X> void give(std::size_t i, const X& gradient) const {
    auto to = din(i);
    if (is_first(i))
      to = gradient;
    else
      to += gradient;
  }
  /// Inputs that can be first.
  static constexpr std::size_t most_first = 32;
  /// The gradient of the i-th weight, to be added to.
  Matrix<S>& dweight(std::size_t i = 0) const {
    return weight_gradients[this->node.weights[i]].value;
  }
};

/// The base class of operations, each of which computes one value. Derive your own from it.
template <class S> struct Operation {
  static constexpr bool is_constant = false;      ///< whether its value is the same for all tokens
  static constexpr bool sees_position = false;    ///< so that it needs tokens, not a constant
  static constexpr bool takes_constants = false;  ///< among inputs that are not

  /// Operations are deleted through this base.
  virtual ~Operation() = default;
  /// Overwrites the output for all tokens of the pass, and advances the state.
  virtual void forward(const Forward<S>& run) const = 0;
  /// Adds to the gradients of the inputs and weights.
  virtual void backward(const Backward<S>& run) const = 0;
  /// True if backward looks at Backward::is_first of its inputs, and so overwrites their gradients.
  virtual bool overwrites() const { return false; }
  /// True if forward also takes its i-th weight in quantised form.
  virtual bool takes_quantised_weight(std::size_t /*i*/) const { return false; }
  /// The state that streaming keeps between passes; null for nothing. For 0 sequences it takes no
  /// memory.
  virtual std::unique_ptr<StatePart> initial_state(Index /*sequences*/) const { return nullptr; }
  /// A zero gradient of such a state. Null if backward does not take one.
  virtual std::unique_ptr<StatePart> state_gradient(Index /*sequences*/) const { return nullptr; }
  /// True if a pass must have the whole sequence, not a part of one behind a SequenceParallel.
  virtual bool needs_whole_sequences() const { return false; }
  /// True if it needs every sequence from its first token on. Then check_state is called also
  /// without a state.
  virtual bool needs_first_token() const { return false; }
  /// Throws unless run's state is one of these. Called for all operations before the first runs.
  virtual void check_state(const Forward<S>& /*run*/) const {}
  /// Tokens that take_back takes from a state, at any time after that many tokens. A state that is
  /// to roll back more of them keeps checkpoints of the operation: see roll_back.hpp.
  virtual Index takes_back() const { return 0; }
  /// Takes the last tokens of sequence b out of run's state.
  virtual void take_back(const Forward<S>& /*run*/, Index /*b*/, Index /*tokens*/) const {}
  /// The numbers that backward needs of the forward pass besides the values; null for nothing.
  virtual std::unique_ptr<OperationTrace> make_trace() const { return nullptr; }
};

}  // namespace fw::networks
