#pragma once

#include <cmath>
#include <fastweights/networks/network.hpp>
#include <map>
#include <set>

/// \file
/// A network is written down as its equations. Functions of values add operations; a module gives
/// the weights inside of it their names.
///
///     fw::networks::Builder<float> builder;
///     auto x = embedding(builder, "embed_tokens", 1000, 64);  // of operations.hpp
///     x = module("mlp", x, [&](auto x) {
///       return linear(silu(linear(x, "gate_proj", 256)) * linear(x, "up_proj", 256),
///                     "down_proj", 64);
///     });                                            // mlp.gate_proj.weight and so on
///     fw::networks::Network<float> network = builder.build(linear(x, "lm_head", 1000));

namespace fw::inline FASTWEIGHTS_ABI::networks {

template <class S> class ModuleScope;

/// Puts a network together, once. See the file's description for an example. All functions throw
/// std::invalid_argument: for a value of another builder or of none, and for whatever is asked for
/// after `build`.
template <class S> class Builder {
 public:
  /// A network without operations.
  Builder() = default;
  /// Values point to it, so it is not copied.
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  /// The input of a layer: vectors of `rows` entries. Other networks have embeddings.
  Value<S> input(Index rows) {
    check_open();
    if (plan_.in.rows > 0 || graph_.takes_symbols)
      fw::detail::throw_invalid({path(), ": the network has an input already"});
    plan_.in = new_buffer(rows, false);
    return {this, plan_.in};
  }

  /// A parameter under `name`, with its initial distribution, to which `centre` is added unless it
  /// is empty; its index. A name that exists already is shared, as tied embeddings are.
  std::size_t weight(const std::string& weight_name, std::vector<Index> axes, Initialiser draw,
                     Matrix<double> centre = {}) {
    check_open();
    const std::string full = path(weight_name);
    double entries = 1;  // no overflow, whatever a hostile file says
    for (const Index n : axes) entries *= n < 1 ? 0 : double(n);
    if (entries < 1 || entries > max_entries)
      fw::detail::throw_invalid({full, ": has too many entries, or none"});
    if (const auto known = find(full, shares_); known != index_of_.end()) {
      if (weights_[known->second].axes != axes)
        fw::detail::throw_invalid({full, ": is shared with another shape"});
      return known->second;
    }
    if (weights_.size() >= max_weights)
      fw::detail::throw_invalid({full, ": the network has too many weights"});
    index_of_[full] = weights_.size();
    weights_.push_back({{}, full, std::move(axes), std::move(draw), nullptr, std::move(centre)});
    return weights_.size() - 1;
  }

  /// The value of a new operation with `rows` rows. Either none of the inputs is constant, or all
  /// are, and then so is the value; an operation for which Op::takes_constants holds takes both.
  template <class Op>
  Value<S> add(Op operation, Index rows, std::vector<Value<S>> in,
               std::vector<std::size_t> weights = {}, const std::string& state_name = "") {
    return add_node(std::make_shared<const Op>(std::move(operation)),
                    {Op::is_constant, Op::sees_position, Op::takes_constants}, rows, std::move(in),
                    std::move(weights), state_name);
  }

  /// The path of a name inside the modules that are being built.
  std::string path(const std::string& of = "") const {
    std::string joined;
    for (const std::string& scope : scopes_) joined += joined.empty() ? scope : '.' + scope;
    if (of.empty()) return joined;
    return joined.empty() ? of : joined + '.' + of;
  }

  /// Rows of the whole buffer that holds a value.
  Index buffer_rows(const Value<S>& value) const {
    check_own(value);
    return plan_.buffer_rows[value.slice.buffer];
  }

  /// True if a value is the same for all tokens: a parameter, or computed from parameters alone.
  bool is_constant(const Value<S>& value) const {
    check_own(value);
    return plan_.is_constant[value.slice.buffer];
  }

  /// Gives the module `with` the weights that the module `of` has so far, under their names. Its
  /// states are its own.
  void share_weights(const std::string& of, const std::string& with) {
    check_open();
    shared_.insert_or_assign(with, Shared{of, shares_++, weights_.size()});
  }

  /// Puts `scope` in front of all names until leave().
  void enter(const std::string& scope) { scopes_.push_back(scope); }
  /// Ends the last scope that was entered, in the module that is being built.
  void leave() {
    if (scopes_.size() <= module_scopes_)
      fw::detail::throw_invalid(
          {path(), path().empty() ? "Builder" : "", ": leave() without enter() before it"});
    scopes_.pop_back();
  }

  /// Notes that the current scope, or `as`, maps `in` to `out`.
  void note_module(std::string module_path, const Value<S>& in, const Value<S>& out) {
    check_own(in);
    check_own(out);
    graph_.modules.push_back({std::move(module_path), in.slice, out.slice});
  }

  /// The input are symbols, fewer than `symbols`, for one embedding or several.
  void take_symbols(Index symbols) {
    check_open();
    if (plan_.in.rows > 0 || (graph_.takes_symbols && graph_.symbols != symbols))
      fw::detail::throw_invalid({path(), ": the network has another input already"});
    graph_.takes_symbols = true;
    graph_.symbols = symbols;
  }

  /// Ends the building: a builder makes one network.
  Network<S> build(const Value<S>& out) {
    if (is_constant(out)) fw::detail::throw_invalid({"the output is the same for all tokens"});
    plan_.out = out.slice;
    graph_.infer = reuse_buffers(plan_);
    graph_.train = std::move(plan_);
    plan_gradients(graph_.train);
    is_built_ = true;
    return {std::move(weights_), std::make_shared<const Graph<S>>(std::move(graph_))};
  }

 private:
  using Names = std::map<std::string, std::size_t>;  // indices of weights

  // They bound what a file with hostile sizes can cost.
  static constexpr Index max_rows = Index(1) << 24;
  static constexpr double max_entries = 1e12;
  static constexpr std::size_t max_operations = std::size_t(1) << 19;
  static constexpr std::size_t max_weights = std::size_t(1) << 18;

  // The facts that an operation's type states.
  struct Facts {
    bool is_constant, sees_position, takes_constants;
  };
  // Compiled once, because it is no template on the operation.
  Value<S> add_node(std::shared_ptr<const Operation<S>> operation, const Facts& is, Index rows,
                    std::vector<Value<S>> in, std::vector<std::size_t> weights,
                    const std::string& state_name) {
    check_open();
    Node<S> node;
    if (plan_.nodes.size() >= max_operations)
      fw::detail::throw_invalid({path(), ": the network has too many operations"});
    std::size_t constants = 0;
    for (const Value<S>& each : in) {
      constants += is_constant(each);
      node.in.push_back(each.slice);
    }
    const bool constant = !in.empty() && constants == in.size();
    if (constants > 0 && !constant && !is.takes_constants)
      fw::detail::throw_invalid({path(), ": an operation takes a constant and a value of tokens"});
    node.operation = std::move(operation);
    node.out = new_buffer(rows, constant || is.is_constant);
    node.weights = std::move(weights);
    node.path = path(state_name);
    node.has_state = node.operation->initial_state(0) != nullptr;  // without its memory
    graph_.from_start |= node.operation->needs_first_token();
    if (constant && (node.has_state || is.sees_position))
      fw::detail::throw_invalid({node.path, ": a constant has no tokens before it"});
    if (node.has_state && !state_paths_.insert(node.path).second)
      fw::detail::throw_invalid({node.path, ": is the name of two states"});
    plan_.nodes.push_back(std::move(node));
    return {this, plan_.nodes.back().out};
  }

  void check_open() const {
    if (is_built_)
      fw::detail::throw_invalid({"Builder: the network is built already, expected a new builder"});
  }
  // Whose weights a module takes: those that there were, `weights` of them. They are looked up and
  // not copied, since many modules may take the same.
  struct Shared {
    std::string of;
    std::size_t number, weights;
  };
  // The weight of a name, its own or a shared one. `of` may share in turn, as it did before.
  Names::const_iterator find(const std::string& full, std::size_t before) const {
    auto known = index_of_.find(full);
    for (std::size_t end = full.find('.'); known == index_of_.end() && end < full.size();
         end = full.find('.', end + 1)) {
      const auto from = shared_.find(full.substr(0, end));
      if (from == shared_.end() || from->second.number >= before) continue;
      known = find(from->second.of + full.substr(end), from->second.number);
      if (known != index_of_.end() && known->second >= from->second.weights)
        known = index_of_.end();
    }
    return known;
  }

  void check_own(const Value<S>& value) const {
    check_open();
    if (value.builder != this)
      fw::detail::throw_invalid({path(), ": a value is that of another builder"});
  }

  Slice new_buffer(Index rows, bool constant) {
    if (rows < 1 || rows > max_rows)
      fw::detail::throw_invalid({path(), ": a value has ", std::to_string(rows),
                                 " rows, expected 1 to ", std::to_string(max_rows)});
    plan_.buffer_rows.push_back(rows);
    plan_.is_constant.push_back(constant);
    return {plan_.buffer_rows.size() - 1, 0, rows};
  }

  friend class ModuleScope<S>;

  std::vector<std::string> scopes_;
  std::size_t module_scopes_ = 0;  // the first of them, which leave() does not end
  std::vector<Weight<S>> weights_;
  Names index_of_;
  std::size_t shares_ = 0;
  std::map<std::string, Shared> shared_;  // by the module that takes them
  std::set<std::string> state_paths_;
  Graph<S> graph_;
  Plan<S> plan_;
  bool is_built_ = false;
};

/// Puts a name in front of others for its lifetime, also if building throws.
template <class S> class ModuleScope {
 public:
  /// Enters the scope `name`.
  ModuleScope(Builder<S>& builder, const std::string& name)
      : builder_(builder), outer_(builder.module_scopes_) {
    builder_.enter(name);
    builder_.module_scopes_ = builder_.scopes_.size();
  }
  /// Leaves it, and all that were entered in it.
  ~ModuleScope() {
    builder_.scopes_.resize(builder_.module_scopes_ - 1);
    builder_.module_scopes_ = outer_;
  }
  /// The scope ends once, so it is not copied.
  ModuleScope(const ModuleScope&) = delete;
  ModuleScope& operator=(const ModuleScope&) = delete;

 private:
  Builder<S>& builder_;
  std::size_t outer_;
};

/// Builds f(x) inside a module, whose name is in front of the names of its weights and states. With
/// an empty name f(x) is part of the module that is being built.
template <class S, class F> Value<S> module(const std::string& name, const Value<S>& x, F&& f) {
  if (name.empty()) return f(x);
  const ModuleScope<S> scope(*x.builder, name);
  const Value<S> out = f(x);
  x.builder->note_module(x.builder->path(), x, out);
  return out;
}

}  // namespace fw::networks
