#pragma once

#include <fastweights/layers/layer.hpp>
#include <fastweights/networks/roll_back_pass.hpp>

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// A part of a network with a name of its own, and the values that go in and come out.
struct Module {
  std::string path;  ///< as in its names: model.layers.3.mlp
  Slice in, out;     ///< its input and output, as rows of a buffer
};

/// The operations that a builder made: the plan of a train pass, whose values stay, and that of an
/// infer pass.
template <class S> struct Graph {
  Plan<S> train, infer;         ///< the operations of a train pass and of an infer pass
  std::vector<Module> modules;  ///< in the order in which they ended
  bool takes_symbols = false;   ///< whether the input are symbols, not vectors
  bool from_start = false;      ///< whether an operation needs the first token: see Operation
  Index symbols = 0;            ///< that the ids name, if it takes symbols
};

namespace detail {
struct ModuleOutput;
}

/// Options of a backward pass of a network.
struct BackwardOptions {
  GradientReady ready = {};  ///< is called for every weight whose gradient is complete
  /// The gradient of the state behind the train pass, to be replaced by that of the state before
  /// it; null if nobody asks.
  State* state = nullptr;
};

/// A layer or model that is put together at run time from operations, as the sizes and options of
/// a checkpoint say. It is a record of weights and a shared graph, so it is copied, trained and
/// saved as other layers are. See builder.hpp for how one is made.
///
///     fw::networks::State state = network.initial_state();
///     fw::networks::Network<float>::Trace trace;
///     network.forward(state, ids, logits, trace, fw::Pass::train);
///     auto grad = fw::zero_gradient(network);
///     network.backward(trace, dlogits, grad);
///
/// forward continues from the state. Shapes: x rows×T or ids T for the tokens of B concatenated
/// sequences, y rows×T. The sequences have the same number of tokens, or those that
/// PassOptions::lengths says:
///
///     network.forward(state, ids, y, trace, {.lengths = std::array<fw::Index, 3>{5, 1, 0}});
///
/// Every sequence has a position of its own. Together they give what each gives alone. Sequences
/// join, leave and are copied by State::add, remove and stream.
///
/// A pass can be one over a part of a sequence, with a SequenceParallel: the state of every
/// operation is then received before the operation and sent on behind it, and its gradient goes the
/// other way. Throws std::invalid_argument when a size does not fit or an id is out of range, and
/// std::length_error when a cache with a limit has no room. A pass of one token with a reused trace
/// allocates nothing, unless a cache grows.
template <class S> struct Network {
  using Scalar = S;
  using State = networks::State;
  static constexpr std::string_view name = "Network";

  std::vector<Weight<S>> weights;         ///< under their published names: see NameTable
  std::shared_ptr<const Graph<S>> graph;  ///< shared by all copies
  static constexpr auto names = fw::names("weights", "graph");

  struct Trace {
    std::vector<Matrix<S>> values, gradients;
    std::vector<Matrix<S>> last;  ///< values of the chosen tokens: see prompt.hpp
    std::vector<std::unique_ptr<OperationTrace>> operations;
    std::shared_ptr<const Graph<S>> graph;  ///< that they belong to
    std::vector<int> ids;
    Streams streams, last_streams;  ///< places of the tokens, and of those of `last`
    Index trained = 0;              ///< tokens of the last pass if it was a train pass, else 0
    SequenceParallel* parallel = nullptr;  ///< that of the last pass
    Replay<S> replay;                      ///< of a state that rolls back
  };

  /// Rows of x.
  Index inputs() const { return built().train.in.rows; }
  /// Rows of y.
  Index outputs() const { return built().train.out.rows; }

  /// The state before the first token of `sequences` sequences.
  State initial_state(Index sequences = 1) const {
    return initial_state(StateOptions{.sequences = sequences});
  }
  /// An initial state with options: one whose last tokens can be rolled back. Such a state
  /// is for infer passes without a SequenceParallel. Throws std::invalid_argument if a size is out
  /// of range or the state of an operation cannot roll back.
  State initial_state(const StateOptions& options) const {
    const Index sequences = options.sequences;
    fw::detail::check_size<Dynamic>(name, "sequences", sequences);
    if (sequences > max_sequences)
      fw::detail::throw_invalid({name, ": ", std::to_string(sequences),
                                 " sequences, expected at most ", std::to_string(max_sequences)});
    if (options.roll_back < 0 || options.roll_back > max_roll_back)
      fw::detail::throw_invalid({name, ": roll_back of ", std::to_string(options.roll_back),
                                 " tokens, expected 0 to ", std::to_string(max_roll_back)});
    State state;
    state.positions.setZero(sequences);
    for (const Node<S>& node : built().train.nodes)
      if (auto part = node.operation->initial_state(sequences))
        state.members.push_back({node.path, std::move(part)});
    if (options.roll_back > 0)
      detail::keep_tokens(state, options, graph->train, graph->takes_symbols);
    return state;
  }

  /// Throws std::invalid_argument unless passes of this network can reach the state, as far as
  /// paths, sizes and counters tell; names the operation, what it is and what is expected. Every
  /// pass checks its state itself. fw::io::load_state with the network asks before it changes a
  /// state. Takes the time of a copy of the state.
  void check_state(const State& state) const {
    State copy = state;
    Trace trace;
    fw::detail::check_size<Dynamic>(name, "sequences", state.sequences());
    const std::vector<Index> no_tokens(std::size_t(state.sequences()), 0);
    check_members(state);
    trace.streams.set(name, state.positions, 0, no_tokens);
    accept(copy, trace, Pass::infer);
  }

  /// The weight under a published name, such as "layers.0.mlp.up_proj.weight". Throws
  /// std::invalid_argument if there is none.
  Weight<S>& weight(std::string_view wanted) { return weights[place_of(wanted)]; }
  const Weight<S>& weight(std::string_view wanted) const { return weights[place_of(wanted)]; }

  /// Draws every weight from the distribution that its operation gives it.
  template <class Generator> void initialise(Generator& random) {
    for (Weight<S>& weight : weights) {
      weight.quantised = nullptr;
      weight.value.resize(weight.rows(), weight.cols());
      for (Index i = 0; i < weight.value.size(); ++i)
        weight.value.data()[i] = drawn(weight, random);
      if (weight.centre.size() > 0) weight.value += weight.centre.template cast<S>();
    }
  }

  /// True for every weight that may be quantised: the matrices of linear maps and embeddings.
  std::vector<bool> quantisable() const {
    std::vector<bool> fits(weights.size(), true);
    for (const Node<S>& node : built().train.nodes)
      for (std::size_t i = 0; i < node.weights.size(); ++i)
        if (!node.operation->takes_quantised_weight(i)) fits[node.weights[i]] = false;
    return fits;
  }

  /// Replaces these matrices by quantised ones, which take less memory and whose product with one
  /// token takes the time of reading them. The network cannot be trained or saved then.
  void quantise(WeightType type) {
    const std::vector<bool> fits = quantisable();
    for (std::size_t i = 0; i < weights.size(); ++i)
      if (fits[i]) weights[i].quantise(type);
  }

  /// Overwrites y with the outputs for all columns of x, and advances the state.
  void forward(State& state, Input<S> x, Output<S> y, Trace& trace,
               const PassOptions& options) const {
    check(!built().takes_symbols, "x", "symbols");
    fw::detail::check_forward(*this, x, y);
    prepare(state, trace, x.cols(), {}, options);
    Forward<S>::template view<S>(trace.values, plan(options.pass).in) = x;
    run(state, y, trace, options.pass);
  }
  void forward(State& state, Input<S> x, Output<S> y, Trace& trace, Pass pass = Pass::infer) const {
    forward(state, x, y, trace, PassOptions{pass});
  }
  /// The outputs for symbols.
  void forward(State& state, Symbols ids, Output<S> y, Trace& trace,
               const PassOptions& options) const {
    check_ids(ids);
    const Index steps = static_cast<Index>(ids.size());
    fw::detail::check_extent(name, "y", y, outputs(), steps);
    prepare(state, trace, steps, ids, options);
    run(state, y, trace, options.pass);
  }
  void forward(State& state, Symbols ids, Output<S> y, Trace& trace,
               Pass pass = Pass::infer) const {
    forward(state, ids, y, trace, PassOptions{pass});
  }

  /// The outputs for a container that converts to symbols, such as a std::vector<int>.
  template <class Ids>
  requires(std::is_convertible_v<const Ids&, Symbols> &&
           !std::is_same_v<Ids, Symbols>) void forward(State& state, const Ids& ids, Output<S> y,
                                                       Trace& trace,
                                                       const PassOptions& options) const {
    forward(state, Symbols(ids), y, trace, options);
  }
  template <class Ids>
  requires(std::is_convertible_v<const Ids&, Symbols> &&
           !std::is_same_v<Ids, Symbols>) void forward(State& state, const Ids& ids, Output<S> y,
                                                       Trace& trace,
                                                       Pass pass = Pass::infer) const {
    forward(state, Symbols(ids), y, trace, PassOptions{pass});
  }

  /// One more token of the only sequence, and its outputs: a text goes on with the symbol drawn
  /// from them. In a loop, give y and a trace that is used again; then a step allocates nothing.
  ///
  ///     const auto logits = model.step(state, id);
  Eigen::Matrix<S, Dynamic, 1> step(State& state, int id) const {
    Eigen::Matrix<S, Dynamic, 1> y(outputs());
    Trace trace;
    step(state, id, y, trace);
    return y;
  }
  void step(State& state, int id, Output<S> y, Trace& trace) const {
    forward(state, Symbols(&id, 1), y, trace);
  }

  /// Reads the tokens and gives the output of the last one of every sequence, y rows×B, as
  /// generating needs it of a prompt. Each sequence has at least one. `chunk` tokens a sequence are
  /// in memory at a time, or all if an operation needs whole sequences; a pass over a
  /// SequenceParallel takes one chunk.
  void prefill(State& state, Symbols ids, Output<S> y, Trace& trace, Index chunk,
               const PassOptions& options) const;
  void prefill(State& state, Symbols ids, Output<S> y, Trace& trace, Index chunk = 256,
               Pass pass = Pass::infer) const {
    prefill(state, ids, y, trace, chunk, PassOptions{pass});
  }

  /// Reads the tokens as prefill does, and gives the outputs of the chosen ones: column i is that
  /// of the token positions[i], which counts the columns of ids from 0. Positions may repeat, in
  /// any order, and a sequence may have no tokens.
  ///
  ///     const auto y = model.logits(state, ids, {3, 17});
  ///
  /// The operations after the last one with a state run for these tokens alone, as the map to
  /// logits does. Throws std::invalid_argument for a position that is out of range.
  Matrix<S> logits(State& state, Symbols ids, const std::vector<Index>& positions,
                   Index chunk = 256, const PassOptions& options = {}) const;

  /// A zero gradient of a state. Throws std::invalid_argument, and names the operation, if one does
  /// not take the gradient of its state.
  State state_gradient(Index sequences = 1) const {
    State gradient = initial_state(sequences);
    for_each_member(gradient, [&](std::size_t i, State::Member& member) {
      member.part = graph->train.nodes[i].operation->state_gradient(sequences);
      if (!member.part)
        fw::detail::throw_invalid({member.path, ": takes no gradient of its state"});
    });
    return gradient;
  }

  /// Gradients for the last train pass; dx is overwritten, grad accumulates. Calls ready(weight)
  /// for every weight of grad that is complete.
  void backward(Input<S> x, Trace& trace, Input<S> dy, Output<S> dx, Network& grad,
                const GradientReady& ready = {}) const {
    backward(x, trace, dy, dx, grad, BackwardOptions{ready});
  }
  /// Gradients without that of x, for symbols.
  void backward(Trace& trace, Input<S> dy, Network& grad, const GradientReady& ready = {}) const {
    backward(trace, dy, grad, BackwardOptions{ready});
  }

  /// Gradients with options, such as that of the state:
  ///
  ///     State dstate = network.state_gradient();
  ///     network.backward(x, trace, dy, dx, grad, {.state = &dstate});
  ///
  /// All that a pass learns of a memory's first state or of its slow weights has its gradient in
  /// grad. Throws std::invalid_argument for a gradient of another network or number of sequences,
  /// and after a pass over a SequenceParallel, which carries these gradients itself.
  void backward(Input<S> x, Trace& trace, Input<S> dy, Output<S> dx, Network& grad,
                const BackwardOptions& options) const {
    check_trained(trace);
    fw::detail::check_backward(*this, x, trace.trained, dy, dx, grad);
    backward(trace, dy, grad, options);
    dx = Forward<S>::template view<const S>(trace.gradients, graph->train.in);
  }
  /// Gradients without that of x, with options, for symbols.
  void backward(Trace& trace, Input<S> dy, Network& grad, const BackwardOptions& options) const {
    check_trained(trace);
    fw::detail::check_extent(name, "dy", dy, outputs(), trace.trained);
    fw::detail::check_gradient(name, *this, grad);
    if (options.state != nullptr) check_state_gradient(*options.state, trace);
    const Plan<S>& plan = graph->train;
    resize(trace.gradients, plan, trace.trained);
    set_zero(trace, plan.zeroed);
    Forward<S>::template view<S>(trace.gradients, plan.out) = dy;
    const auto first = options.ready ? first_uses() : std::vector<std::size_t>();
    std::size_t part = options.state == nullptr ? 0 : options.state->members.size();
    for (std::size_t i = plan.nodes.size(); i-- > 0;) {
      const Node<S>& node = plan.nodes[i];
      set_zero(trace, node.zeroed);
      const auto received = received_gradient(node, trace);
      StatePart* dstate = received.get();
      if (options.state != nullptr && node.has_state)
        dstate = options.state->members[--part].part.get();
      node.operation->backward(
          Backward<S>{{node, weights, trace.values, nullptr, trace.operations[i].get(), trace.ids,
                       trace.streams, true},
                      trace.gradients,
                      grad.weights,
                      dstate});
      if (received) fw::detail::send_gradient(*trace.parallel, received->object());
      for (std::size_t w = 0; w < first.size(); ++w)
        if (first[w] == i) options.ready(grad.part(w));
    }
  }

  /// The penalties that operations have added to the loss of the trace's last pass, which must be a
  /// train pass. Their gradient is in those of backward.
  double penalty(const Trace& trace) const {
    check_trained(trace);
    double sum = 0;
    for (const auto& each : trace.operations)
      if (each) sum += each->penalty();
    return sum;
  }

  /// Calls f(path, input, output) for every module, with the values of the trace's last pass, which
  /// must be a train pass.
  template <class F> void for_each_module(Trace& trace, const F& f) const {
    check_trained(trace);
    for (const Module& module : graph->modules)
      f(module.path, Forward<S>::template view<const S>(trace.values, module.in),
        Forward<S>::template view<const S>(trace.values, module.out));
  }

  /// The names that hidden_states takes, but the empty one, in the order in which the outputs are
  /// complete.
  std::vector<std::string> module_names() const;

  /// The outputs of modules for all tokens of an infer pass, one column a token, in the order of
  /// the names. The state advances as with forward. x are symbols or vectors.
  ///
  ///     const auto hidden = model.hidden_states(state, ids, {"model.layers.3", "model.norm"});
  ///
  /// A linear map, norm, convolution or embedding is a module with the name of its weights:
  /// model.norm has model.norm.weight. The empty name is the network itself. Of several modules
  /// with one name, the first is taken. Operations behind these modules and behind the last state
  /// do not run. Throws std::invalid_argument for a name that is not among module_names.
  template <class X>
  std::vector<Matrix<S>> hidden_states(State& state, const X& x,
                                       const std::vector<std::string>& modules,
                                       const PassOptions& options = {}) const {
    if constexpr (std::is_convertible_v<const X&, Symbols>)
      return hidden_states_of(state, Symbols(x), modules, options);
    else
      return hidden_states_of(state, Input<S>(x), modules, options);
  }

  /// As a record whose members are known at run time: see core/leaves.hpp.
  std::size_t part_count() const { return weights.size(); }
  fw::detail::Object part(std::size_t i) {
    if (weights[i].quantised)
      fw::detail::throw_invalid({name, ": ", weights[i].name, " is quantised, not a parameter"});
    return weights[i].object();
  }

 private:
  template <class Generator> static S drawn(const Weight<S>& weight, Generator& random) {
    const double uniform = random.uniform();  // first, with every compiler
    return S(weight.initialiser(uniform, random.normal()));
  }
  static constexpr Index max_sequences = Index(1) << 24;  // sizes of states do not overflow
  static constexpr Index max_roll_back = Index(1) << 16;

  // A network that was declared and never set has no graph.
  const Graph<S>& built() const {
    if (!graph)
      fw::detail::throw_invalid({name, ": is empty, expected one that Builder::build made"});
    return *graph;
  }
  static void check(bool fits, std::string_view given, std::string_view expected) {
    if (!fits)
      fw::detail::throw_invalid({name, ": given ", given, ", the network takes ", expected});
  }

  void check_ids(Symbols ids) const {
    check(built().takes_symbols, "the symbols", "vectors");
    fw::detail::check_not_empty(name, "ids", static_cast<Index>(ids.size()));
    fw::detail::check_symbols(name, ids, graph->symbols);
  }

  std::size_t place_of(std::string_view wanted) const {
    for (std::size_t i = 0; i < weights.size(); ++i)
      if (weights[i].name == wanted) return i;
    fw::detail::throw_invalid(
        {name, ": has no weight ", wanted, " among its ", std::to_string(weights.size())});
  }
  // The first node that uses each weight. A weight that no node uses belongs to the first one.
  std::vector<std::size_t> first_uses() const {
    std::vector<std::size_t> first(weights.size(), 0);
    const auto& nodes = graph->train.nodes;
    for (std::size_t i = nodes.size(); i-- > 0;)
      for (const std::size_t w : nodes[i].weights) first[w] = i;
    return first;
  }

  void check_trained(const Trace& trace) const {
    if (trace.trained == 0 || trace.graph != graph)
      fw::detail::throw_invalid({name, ": the trace needs a train pass of the network before"});
  }

  void check_weights(bool for_training) const {
    for (const Weight<S>& weight : weights)
      if (weight.value.size() == 0 && (for_training || !weight.quantised))
        fw::detail::throw_invalid({name, ": ", weight.name,
                                   weight.quantised
                                       ? " is quantised, training needs it as it was"
                                       : " is not set; load the weights or call fw::initialise"});
  }

  static void check_positions(const Positions& positions) {
    for (const Index position : positions)
      if (position < 0 || position > max_count)
        fw::detail::throw_invalid({name, ": the state's position is ", std::to_string(position)});
  }
  // In a pass over parts: the tokens before this part, and those before the next one.
  static void pass_positions(State& state, Streams& streams, Pass pass) {
    if (pass.parallel() == nullptr) return;
    pass.parallel()->receive_state(fw::detail::object(state.positions));
    streams.move_to(state.positions);
    Positions after = state.positions;
    streams.advance(after);
    pass.parallel()->send_state(fw::detail::object(after));
  }

  bool needs_whole_sequences() const {
    return std::any_of(graph->train.nodes.begin(), graph->train.nodes.end(),
                       [](const Node<S>& node) { return node.operation->needs_whole_sequences(); });
  }
  // In a train pass over parts, every state has a gradient, which goes back.
  static void check_takes_parts(const std::vector<Node<S>>& nodes, Pass pass) {
    for (const Node<S>& node : nodes)
      if (node.operation->needs_whole_sequences() ||
          (pass.trains() && node.has_state && !node.operation->state_gradient(0)))
        fw::detail::check_whole(node.path, pass);
  }
  static void set_zero(Trace& trace, const std::vector<std::size_t>& buffers) {
    for (const std::size_t i : buffers) trace.gradients[i].setZero();
  }
  void check_state_gradient(State& gradient, const Trace& trace) const {
    State zero = state_gradient(trace.streams.count());
    check(trace.parallel == nullptr, "a gradient of the state",
          "none after a pass over a SequenceParallel");
    bool same = gradient.members.size() == zero.members.size();
    for (std::size_t i = 0; same && i < zero.members.size(); ++i)
      same =
          gradient.members[i].path == zero.members[i].path &&
          detail::same_records(gradient.members[i].part->object(), zero.members[i].part->object());
    if (!same)
      fw::detail::throw_invalid({name,
                                 ": the gradient of the state does not fit, expected one "
                                 "that state_gradient(",
                                 std::to_string(trace.streams.count()), ") made"});
  }
  // The gradient of the state behind a part; null for whole sequences.
  static std::unique_ptr<StatePart> received_gradient(const Node<S>& node, const Trace& trace) {
    if (trace.parallel == nullptr || !node.has_state) return nullptr;
    auto gradient = node.operation->state_gradient(trace.streams.count());
    fw::detail::receive_gradient(*trace.parallel, gradient->object());
    return gradient;
  }

  // With `wanted`, the other buffers stay without columns. `later` tokens come in other passes.
  void prepare(State& state, Trace& trace, Index columns, Symbols ids, const PassOptions& options,
               const std::vector<bool>& wanted = {}, std::span<const Index> later = {}) const {
    const Pass pass = options.pass;
    check_weights(pass.trains());
    trace.trained = 0;
    trace.streams.set(name, state.positions, columns, options.lengths);
    trace.streams.set_later(later);
    if (pass.parallel() != nullptr) check_takes_parts(graph->train.nodes, pass);
    trace.parallel = pass.parallel();
    check_members(state);
    pass_positions(state, trace.streams, pass);
    trace.ids.assign(ids.begin(), ids.end());
    resize(trace.values, plan(pass), columns, wanted);
    accept(state, trace, pass);
    if (state.roll_back_limit > 0) detail::plan_moves(state, trace.streams, trace.replay);
  }

  // Before any operation changes its state.
  void accept(State& state, Trace& trace, Pass pass) const {
    check_positions(state.positions);
    if (state.roll_back_limit > 0) {
      check_pass_rolls_back(pass);
      detail::check_kept(state, name, graph->takes_symbols);
    }
    if (trace.graph != graph) make_operations(trace);
    check_paths(state);
    if (state.roll_back_limit > 0) settle(state, trace);
    for_each_member(state, [&](std::size_t i, const State::Member& member) {
      plan(pass).nodes[i].operation->check_state(forward_of(i, member.part.get(), trace, pass));
    });
    if (graph->from_start) check_starts(trace, pass);
  }
  void check_starts(Trace& trace, Pass pass) const {
    const auto& nodes = plan(pass).nodes;
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (!nodes[i].has_state && nodes[i].operation->needs_first_token())
        nodes[i].operation->check_state(forward_of(i, nullptr, trace, pass));
  }
  void make_operations(Trace& trace) const {
    trace.operations.clear();
    trace.replay.nodes.clear();
    for (const Node<S>& node : graph->train.nodes) {
      trace.operations.push_back(node.operation->make_trace());
      if (node.has_state) trace.replay.nodes.push_back(detail::node_apart(node));
    }
    trace.graph = graph;
  }
  void check_members(const State& state) const {
    const std::vector<Node<S>>& nodes = built().train.nodes;
    const auto parts = std::count_if(nodes.begin(), nodes.end(),
                                     [](const Node<S>& node) { return node.has_state; });
    if (Index(state.members.size()) != parts)
      fw::detail::throw_mismatch(name, "the state", Index(state.members.size()), "members", parts,
                                 "the network");
  }

  // Calls f(index of a node, its part of the state).
  template <class F> void for_each_member(State& state, const F& f) const {
    std::size_t part = 0;
    for (std::size_t i = 0; i < graph->train.nodes.size(); ++i)
      if (graph->train.nodes[i].has_state) f(i, state.members[part++]);
  }
  void check_paths(State& state) const {
    for_each_member(state, [&](std::size_t i, const State::Member& member) {
      const std::string& path = graph->train.nodes[i].path;
      if (member.path != path)
        fw::detail::throw_invalid({path, ": the state is that of ", member.path});
    });
  }

  static void check_pass_rolls_back(Pass pass) {
    check(!pass.trains(), "a state that rolls back", "one without in a train pass");
    check(pass.parallel() == nullptr, "a state that rolls back",
          "one without in a pass over a SequenceParallel");
  }
  // Operations leave the tokens that were rolled back.
  void settle(State& state, Trace& trace) const {
    for_each_member(state, [&](std::size_t i, const State::Member& member) {
      detail::check_kept_inputs(graph->train.nodes[i], member, state, graph->train.is_constant);
    });
    for (Index b = 0; b < state.sequences(); ++b) {
      KeptTokens& own = state.kept[std::size_t(b)];
      if (own.taken > 0)
        for_each_member(state, [&](std::size_t i, State::Member& member) {
          detail::take_back(state, b, member, forward_of(i, member.part.get(), trace, Pass::infer));
        });
      own.taken = 0;
      own.return_to_checkpoint();
    }
  }
  // After the operations.
  static void advance(State& state, Trace& trace) {
    trace.streams.advance(state.positions);
    if (state.roll_back_limit > 0)
      detail::advance_kept(state, trace.ids, trace.streams, trace.replay);
  }

  Forward<S> forward_of(std::size_t i, StatePart* state, Trace& trace, Pass pass) const {
    return {plan(pass).nodes[i],       weights,   trace.values,  state,
            trace.operations[i].get(), trace.ids, trace.streams, pass.trains()};
  }

  const Plan<S>& plan(Pass pass) const { return pass.trains() ? graph->train : graph->infer; }
  static void resize(std::vector<Matrix<S>>& buffers, const Plan<S>& plan, Index columns,
                     const std::vector<bool>& wanted = {}) {
    buffers.resize(plan.buffer_rows.size());
    for (std::size_t i = 0; i < buffers.size(); ++i)
      buffers[i].resize(plan.buffer_rows[i], !wanted.empty() && !wanted[i] ? 0
                                             : plan.is_constant[i]         ? 1
                                                                           : columns);
  }

  void run(State& state, Output<S>& y, Trace& trace, Pass pass) const {
    run(state, trace, 0, plan(pass).nodes.size(), pass);
    advance(state, trace);
    y = Forward<S>::template view<const S>(trace.values, plan(pass).out);
    if (pass.trains()) trace.trained = y.cols();
  }
  void run(State& state, Trace& trace, std::size_t begin, std::size_t end, Pass pass) const {
    const std::vector<Node<S>>& nodes = plan(pass).nodes;
    const auto has_state = [](const Node<S>& node) { return node.has_state; };
    std::size_t part =
        std::size_t(std::count_if(nodes.begin(), nodes.begin() + std::ptrdiff_t(begin), has_state));
    for (std::size_t i = begin; i < end; ++i) {
      const Node<S>& node = nodes[i];
      StatePart* own = nullptr;
      if (node.has_state) own = state.members[part++].part.get();
      if (own != nullptr && state.members[part - 1].kept) {
        const auto run = forward_of(i, own, trace, pass);
        detail::KeptOperation<S>(run, state, part - 1, plan(pass), trace.replay).forward();
        continue;
      }
      SequenceParallel* const parallel = own == nullptr ? nullptr : pass.parallel();
      if (parallel != nullptr) {
        fw::detail::receive_state(*parallel, own->object());
        node.operation->check_state(forward_of(i, own, trace, pass));
      }
      node.operation->forward(forward_of(i, own, trace, pass));
      if (parallel != nullptr) fw::detail::send_state(*parallel, own->object());
    }
  }

  // See hidden_states.hpp.
  std::vector<Matrix<S>> hidden_states_of(State& state, Symbols ids,
                                          const std::vector<std::string>& modules,
                                          const PassOptions& options) const;
  std::vector<Matrix<S>> hidden_states_of(State& state, Input<S> x,
                                          const std::vector<std::string>& modules,
                                          const PassOptions& options) const;
  std::vector<Matrix<S>> run_modules(State& state, Trace& trace,
                                     const std::vector<detail::ModuleOutput>& wanted,
                                     Pass pass) const;

  // Prompts are read as prompt.hpp says.
  Streams prompt_streams(const State& state, Symbols ids, Index chunk,
                         const PassOptions& options) const;
  void read_prompt(State& state, Symbols ids, const Streams& prompt,
                   const std::vector<ChosenToken>& chosen, Output<S>& y, Trace& trace, Index chunk,
                   Pass pass) const;
  void run_tail(State& state, const std::vector<ChosenToken>& chosen, Index begin, Output<S>& y,
                Trace& trace) const;
};

}  // namespace fw::networks

#include <fastweights/networks/hidden_states.hpp>
#include <fastweights/networks/prompt.hpp>
