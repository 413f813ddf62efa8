#pragma once

#include <algorithm>
#include <fastweights/networks/network.hpp>
#include <numeric>
#include <set>

/// \file
/// The outputs of modules in an infer pass, for Network::hidden_states. The buffers of such a pass
/// are used again, so each output is copied as soon as its operation has run.

namespace fw::inline FASTWEIGHTS_ABI::networks {

namespace detail {

// The output of a module: rows of the output of an operation, complete when the first `operations`
// have run. 0: rows of the network's input.
struct ModuleOutput {
  std::string path;
  std::size_t operations;
  Index first, rows;
};

// The name of a module that is one operation, from its weights: P of P.weight and P.bias. Empty for
// other operations, such as experts, whose weights are those of several modules.
template <class S>
std::string module_of_weights(const Node<S>& node, const std::vector<Weight<S>>& weights) {
  constexpr std::string_view suffix = ".weight";
  if (node.weights.empty()) return "";
  const std::string& first = weights[node.weights.front()].name;
  if (!first.ends_with(suffix)) return "";
  const std::string path = first.substr(0, first.size() - suffix.size());
  const bool is_one = std::all_of(node.weights.begin(), node.weights.end(), [&](std::size_t w) {
    return weights[w].name.starts_with(path + '.');
  });
  return is_one ? path : "";
}

// All modules whose output is one column a token. A published module may be a norm and more, such
// as a gate, so the modules of the builder come before single operations of the same name.
template <class S> std::vector<ModuleOutput> module_outputs(const Network<S>& network) {
  const Plan<S>& plan = network.graph->train;
  std::vector<std::size_t> operations(plan.buffer_rows.size(), 0);  // that complete each buffer
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) operations[plan.nodes[i].out.buffer] = i + 1;
  std::vector<ModuleOutput> all;
  const auto add = [&](const std::string& path, const Slice& out) {
    if (!plan.is_constant[out.buffer])
      all.push_back({path, operations[out.buffer], out.first, out.rows});
  };
  for (const Module& module : network.graph->modules) add(module.path, module.out);
  for (const Node<S>& node : plan.nodes)
    if (const auto path = module_of_weights(node, network.weights); !path.empty())
      add(path, node.out);
  add("", plan.out);
  return all;
}

// The names that exist below the nearest module above `path`, for an error.
inline std::string names_near(const std::vector<ModuleOutput>& all, std::string path) {
  constexpr std::size_t most = 24;
  std::set<std::string> names;
  do {
    const std::size_t dot = path.rfind('.');
    path.resize(dot == std::string::npos ? 0 : dot);
    for (const ModuleOutput& each : all)
      if (!each.path.empty() && (path.empty() || each.path.starts_with(path + '.')))
        names.insert(each.path);
  } while (names.empty() && !path.empty());
  std::string text;
  for (const std::string& each : names)
    if (names.size() <= most || each < *std::next(names.begin(), most))
      text += (text.empty() ? "" : ", ") + each;
  if (names.size() > most) text += " and " + std::to_string(names.size() - most) + " more";
  return text;
}

template <class S>
std::vector<ModuleOutput> find_modules(const Network<S>& network,
                                       const std::vector<std::string>& wanted) {
  const std::vector<ModuleOutput> all = module_outputs(network);
  std::vector<ModuleOutput> found;
  for (const std::string& path : wanted) {
    const auto at = std::find_if(all.begin(), all.end(),
                                 [&](const ModuleOutput& each) { return each.path == path; });
    if (at == all.end())
      fw::detail::throw_invalid({Network<S>::name, ": has no module ", path,
                                 "; expected a name of module_names, such as ",
                                 names_near(all, path)});
    found.push_back(*at);
  }
  return found;
}

inline bool is_earlier(const ModuleOutput& a, const ModuleOutput& b) {
  return a.operations < b.operations;
}

}  // namespace detail

template <class S> std::vector<std::string> Network<S>::module_names() const {
  built();
  std::vector<detail::ModuleOutput> all = detail::module_outputs(*this);
  std::stable_sort(all.begin(), all.end(), detail::is_earlier);
  std::set<std::string> known{""};
  std::vector<std::string> paths;
  for (const auto& each : all)
    if (known.insert(each.path).second) paths.push_back(each.path);
  return paths;
}

template <class S>
std::vector<Matrix<S>> Network<S>::hidden_states_of(State& state, Symbols ids,
                                                    const std::vector<std::string>& modules,
                                                    const PassOptions& options) const {
  check(!options.pass.trains(), "a train pass", "an infer pass here");
  check_ids(ids);
  const auto wanted = detail::find_modules(*this, modules);
  Trace trace;
  prepare(state, trace, static_cast<Index>(ids.size()), ids, options);
  return run_modules(state, trace, wanted, options.pass);
}

template <class S>
std::vector<Matrix<S>> Network<S>::hidden_states_of(State& state, Input<S> x,
                                                    const std::vector<std::string>& modules,
                                                    const PassOptions& options) const {
  check(!options.pass.trains(), "a train pass", "an infer pass here");
  check(!built().takes_symbols, "x", "symbols");
  fw::detail::check_not_empty(name, "x", x.cols());
  fw::detail::check_extent(name, "x", x, inputs(), x.cols());
  const auto wanted = detail::find_modules(*this, modules);
  Trace trace;
  prepare(state, trace, x.cols(), {}, options);
  Forward<S>::template view<S>(trace.values, graph->infer.in) = x;
  return run_modules(state, trace, wanted, options.pass);
}

template <class S>
std::vector<Matrix<S>> Network<S>::run_modules(State& state, Trace& trace,
                                               const std::vector<detail::ModuleOutput>& wanted,
                                               Pass pass) const {
  const Plan<S>& plan = graph->infer;
  std::vector<std::size_t> order(wanted.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
    return detail::is_earlier(wanted[i], wanted[j]);
  });
  std::vector<Matrix<S>> outputs(wanted.size());
  std::size_t done = 0;
  for (const std::size_t i : order) {
    run(state, trace, done, wanted[i].operations, pass);
    done = wanted[i].operations;
    const std::size_t buffer = done == 0 ? plan.in.buffer : plan.nodes[done - 1].out.buffer;
    outputs[i] = Forward<S>::template view<const S>(trace.values,
                                                    Slice{buffer, wanted[i].first, wanted[i].rows});
  }
  run(state, trace, done, std::max(done, plan.tail()), pass);
  advance(state, trace);
  return outputs;
}

}  // namespace fw::networks
