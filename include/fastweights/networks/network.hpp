#pragma once

#include <fastweights/layers/layer.hpp>
#include <fastweights/networks/operation.hpp>

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// A part of a network with a name of its own, and the values that go in and come out.
struct Module {
  std::string path;
  Slice in, out;
};

/// What a builder made: the operations in the order of their execution.
template <class S> struct Program {
  std::vector<Node<S>> nodes;
  std::vector<Index> buffer_rows;
  std::vector<bool> is_constant;  ///< buffers of one column
  std::vector<Module> modules;
  bool takes_symbols = false;
  Index symbols = 0;  ///< that the ids name, if it takes symbols
  Slice in, out;
};

/// A layer or model that is put together at run time from operations, as the sizes and options of
/// a checkpoint say. It is a record of weights and a shared program, so it is copied, trained and
/// saved as other layers are. See builder.hpp for how one is made.
///
///     fw::networks::State state = network.initial_state();
///     fw::networks::Trace<float> trace;
///     network.forward(state, ids, logits, trace, fw::Pass::train);
///     auto grad = fw::zero_gradient(network);
///     network.backward(trace, dlogits, grad);
///
/// forward continues from the state. Shapes: x rows×BT or ids BT for B concatenated sequences, y
/// rows×BT. Throws std::invalid_argument when a size does not fit or an id is out of range. A pass
/// with a reused trace and the same number of tokens allocates nothing of its own.
template <class S> struct Network {
  using Scalar = S;
  using State = networks::State;
  static constexpr std::string_view name = "Network";

  std::vector<Weight<S>> weights;
  std::shared_ptr<const Program<S>> program;
  static constexpr auto names = fw::names("weights", "program");

  struct Trace {
    std::vector<Matrix<S>> values, gradients;
    std::vector<std::unique_ptr<OperationTrace>> operations;
    std::vector<int> ids;
    Index sequences = 1, position = 0;
    Index trained = 0;  ///< tokens of the last pass if it was a train pass, else 0
  };

  Index inputs() const { return program->in.rows; }
  Index outputs() const { return program->out.rows; }

  State initial_state(Index sequences = 1) const {
    fw::detail::check_size<Dynamic>(name, "sequences", sequences);
    State state;
    state.sequences = sequences;
    for (const Node<S>& node : program->nodes)
      if (auto part = node.operation->initial_state(sequences))
        state.members.push_back({node.path, std::move(part)});
    return state;
  }

  /// Draws every weight from the distribution that its operation gives it.
  template <class Generator> void initialise(Generator& random) {
    for (Weight<S>& weight : weights) {
      weight.value.resize(weight.rows(), weight.cols());
      for (Index i = 0; i < weight.value.size(); ++i)
        weight.value.data()[i] = S(weight.draw(random.uniform(), random.normal()));
    }
  }

  /// Which weights may be compact: the matrices of linear maps and embeddings.
  std::vector<bool> compressible() const {
    std::vector<bool> fits(weights.size(), true);
    for (const Node<S>& node : program->nodes)
      for (const std::size_t i : node.weights)
        fits[i] = fits[i] && node.operation->takes_compact_weights();
    return fits;
  }

  /// Replaces these matrices by compact ones, which take less memory and whose product with one
  /// token takes the time of reading them. The network cannot be trained or saved then.
  void compress(Storage storage) {
    const std::vector<bool> fits = compressible();
    for (std::size_t i = 0; i < weights.size(); ++i)
      if (fits[i]) weights[i].compress(storage);
  }

  void forward(State& state, Input<S> x, Output<S> y, Trace& trace, Pass pass = Pass::infer) const {
    check(!program->takes_symbols, "x", "symbols");
    fw::detail::check_forward(*this, x, y);
    prepare(state, trace, x.cols(), {}, pass);
    Forward<S>::template view<S>(trace.values, program->in) = x;
    run(state, y, trace, pass);
  }
  void forward(State& state, Symbols ids, Output<S> y, Trace& trace,
               Pass pass = Pass::infer) const {
    check(program->takes_symbols, "the symbols", "vectors");
    const Index steps = static_cast<Index>(ids.size());
    fw::detail::check_not_empty(name, "ids", steps);
    fw::detail::check_symbols(name, ids, program->symbols);
    fw::detail::check_extent(name, "y", y, outputs(), steps);
    prepare(state, trace, steps, ids, pass);
    run(state, y, trace, pass);
  }

  /// Gradients for the last train pass; dx is overwritten, grad accumulates.
  void backward(Input<S> x, Trace& trace, Input<S> dy, Output<S> dx, Network& grad) const {
    fw::detail::check_backward(*this, x, trace.trained, dy, dx, grad);
    backward(trace, dy, grad);
    dx = Forward<S>::template view<const S>(trace.gradients, program->in);
  }
  void backward(Trace& trace, Input<S> dy, Network& grad) const {
    fw::detail::check_extent(name, "dy", dy, outputs(), trace.trained);
    fw::detail::check_same_shapes(name, *this, "grad", grad);
    trace.gradients.resize(trace.values.size());
    for (std::size_t i = 0; i < trace.values.size(); ++i)
      trace.gradients[i].setZero(trace.values[i].rows(), trace.values[i].cols());
    Forward<S>::template view<S>(trace.gradients, program->out) = dy;
    for (std::size_t i = program->nodes.size(); i-- > 0;)
      program->nodes[i].operation->backward(
          Backward<S>{{program->nodes[i], weights, trace.values, nullptr, trace.operations[i].get(),
                       trace.ids, trace.sequences, trace.position, true},
                      trace.gradients,
                      grad.weights});
  }

  /// Calls f(path, input, output) for every module, with the values of the trace's last pass.
  template <class F> void for_each_module(Trace& trace, const F& f) const {
    for (const Module& module : program->modules)
      f(module.path, Forward<S>::template view<const S>(trace.values, module.in),
        Forward<S>::template view<const S>(trace.values, module.out));
  }

  // As a record whose members are known at run time: see core/leaves.hpp.
  std::size_t part_count() const { return weights.size(); }
  fw::detail::Object part(std::size_t i) {
    return fw::detail::object(weights[i].value, weights[i].name);
  }

 private:
  static void check(bool fits, std::string_view given, std::string_view expected) {
    if (!fits)
      fw::detail::throw_invalid({name, ": given ", given, ", the network takes ", expected});
  }

  void check_weights(bool for_training) const {
    for (const Weight<S>& weight : weights)
      if (weight.value.size() == 0 && (for_training || !weight.compact))
        fw::detail::throw_invalid({name, ": ", weight.name,
                                   weight.compact
                                       ? " is compact, training needs it as it was"
                                       : " is not set; load the weights or call fw::initialise"});
  }

  void prepare(const State& state, Trace& trace, Index columns, Symbols ids, Pass pass) const {
    check_weights(pass == Pass::train);
    trace.trained = 0;
    trace.sequences = fw::detail::check_sequences(name, state.sequences, columns);
    if (state.position < 0 || state.position > max_count)
      fw::detail::throw_invalid(
          {name, ": the state's position is ", std::to_string(state.position)});
    const auto parts = std::count_if(program->nodes.begin(), program->nodes.end(),
                                     [](const Node<S>& node) { return node.has_state; });
    if (Index(state.members.size()) != parts)
      fw::detail::throw_mismatch(name, "the state", Index(state.members.size()), "members", parts,
                                 "the network");
    trace.position = state.position;
    trace.ids.assign(ids.begin(), ids.end());
    trace.values.resize(program->buffer_rows.size());
    for (std::size_t i = 0; i < trace.values.size(); ++i)
      trace.values[i].resize(program->buffer_rows[i], program->is_constant[i] ? 1 : columns);
    if (trace.operations.empty())
      for (const Node<S>& node : program->nodes)
        trace.operations.push_back(node.operation->make_trace());
  }

  void run(State& state, Output<S>& y, Trace& trace, Pass pass) const {
    const bool train = pass == Pass::train;
    std::size_t part = 0;
    for (std::size_t i = 0; i < program->nodes.size(); ++i) {
      const Node<S>& node = program->nodes[i];
      StatePart* own = nullptr;
      if (node.has_state) own = state.members[part++].part.get();
      node.operation->forward(Forward<S>{node, weights, trace.values, own,
                                         trace.operations[i].get(), trace.ids, trace.sequences,
                                         trace.position, train});
    }
    state.position += y.cols() / trace.sequences;
    y = Forward<S>::template view<const S>(trace.values, program->out);
    if (train) trace.trained = y.cols();
  }
};

}  // namespace fw::networks
