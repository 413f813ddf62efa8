/// Reads a text in pieces: see log_probabilities.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <fastweights/models/log_probabilities.hpp>

namespace fw::inline FASTWEIGHTS_ABI::models {
namespace detail {

// One token's log softmax, at `id`. The largest logit is taken out, so that nothing overflows.
template <class Column> double log_probability(const Column& logits, int id) {
  double most = -HUGE_VAL, sum = 0;
  for (Index i = 0; i < logits.size(); ++i) most = std::max(most, double(logits[i]));
  for (Index i = 0; i < logits.size(); ++i) sum += std::exp(double(logits[i]) - most);
  return double(logits[id]) - most - std::log(sum);
}

}  // namespace detail

template <class S>
std::vector<double> log_probabilities(const networks::Network<S>& network, Symbols ids) {
  const Index count = Index(ids.size()), rows = network.outputs();
  if (count < 2)
    fw::detail::throw_mismatch("log_probabilities", "the text", count, "tokens", 2, "at least");
  if (!network.graph->takes_symbols || network.graph->symbols > rows)
    fw::detail::throw_invalid({"log_probabilities: the network has ", std::to_string(rows),
                               " outputs, expected a logit for each of its symbols"});
  fw::detail::check_symbols("log_probabilities", ids, network.graph->symbols);
  const Index piece = std::clamp<Index>((Index(1) << 24) / rows, 1, 256);
  networks::State state = network.initial_state();
  typename networks::Network<S>::Trace trace;
  Eigen::Matrix<S, Dynamic, Dynamic> logits;
  std::vector<double> all;
  for (Index t = 0; t + 1 < count; t += piece) {
    const Index steps = std::min(piece, count - 1 - t);
    logits.resize(rows, steps);
    network.forward(state, ids.subspan(std::size_t(t), std::size_t(steps)), logits, trace);
    for (Index i = 0; i < steps; ++i)
      all.push_back(detail::log_probability(logits.col(i), ids[std::size_t(t + i + 1)]));
  }
  return all;
}

}  // namespace fw::models
