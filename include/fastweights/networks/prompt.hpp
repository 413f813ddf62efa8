#pragma once

#include <fastweights/networks/network.hpp>

/// \file
/// The reading of a prompt by Network::prefill and Network::logits. The operations up to the
/// last one with a state see all tokens, some of each sequence at a time. The operations behind it,
/// the tail, see the chosen tokens alone.

namespace fw::inline FASTWEIGHTS_ABI::networks {

namespace detail {

// The last token of every sequence, for its column of y.
inline std::vector<ChosenToken> last_tokens(std::string_view owner, const Streams& prompt) {
  std::vector<ChosenToken> chosen;
  for (Index b = 0; b < prompt.count(); ++b) {
    if (prompt.steps(b) < 1)
      fw::detail::throw_invalid(
          {owner, ": sequence ", std::to_string(b), " has no tokens, expected a last one"});
    chosen.push_back({b, prompt.steps(b) - 1, b});
  }
  return chosen;
}

// The tokens in these columns of a prompt of `tokens`.
inline std::vector<ChosenToken> tokens_at(std::string_view owner, const Streams& prompt,
                                          Index tokens, const std::vector<Index>& columns) {
  std::vector<ChosenToken> chosen;
  for (const Index column : columns) {
    const Index i = Index(chosen.size());
    if (column < 0 || column >= tokens)
      fw::detail::throw_invalid({owner, ": positions[", std::to_string(i), "] is ",
                                 std::to_string(column), ", expected 0 to ",
                                 std::to_string(tokens - 1)});
    const Index b = prompt.sequence_of(column);
    chosen.push_back({b, column - prompt.first(b), i});
  }
  return chosen;
}

}  // namespace detail

template <class S>
void Network<S>::prefill(State& state, Symbols ids, Output<S> y, Trace& trace, Index chunk,
                         const PassOptions& options) const {
  const Streams prompt = prompt_streams(state, ids, chunk, options);
  fw::detail::check_extent(name, "y", y, outputs(), prompt.count());
  read_prompt(state, ids, prompt, detail::last_tokens(name, prompt), y, trace, chunk, options.pass);
}

template <class S>
Matrix<S> Network<S>::logits(State& state, Symbols ids, const std::vector<Index>& positions,
                             Index chunk, const PassOptions& options) const {
  const Streams prompt = prompt_streams(state, ids, chunk, options);
  const auto chosen = detail::tokens_at(name, prompt, Index(ids.size()), positions);
  Matrix<S> y(outputs(), Index(positions.size()));
  Output<S> columns(y);
  Trace trace;
  read_prompt(state, ids, prompt, chosen, columns, trace, chunk, options.pass);
  return y;
}

// The places of the tokens, after all checks of the arguments.
template <class S>
Streams Network<S>::prompt_streams(const State& state, Symbols ids, Index chunk,
                                   const PassOptions& options) const {
  check(!options.pass.trains(), "a train pass", "an infer pass here");
  check_ids(ids);
  fw::detail::check_size<Dynamic>(name, "chunk", chunk);
  Streams prompt;
  prompt.set(name, state.positions, static_cast<Index>(ids.size()), options.lengths);
  if (options.pass.parallel() != nullptr && prompt.most_steps() > chunk)
    fw::detail::throw_mismatch(name, "the part", prompt.most_steps(), "tokens", chunk,
                               "at most, a chunk");
  return prompt;
}

template <class S>
void Network<S>::read_prompt(State& state, Symbols ids, const Streams& prompt,
                             const std::vector<ChosenToken>& chosen, Output<S>& y, Trace& trace,
                             Index chunk, Pass pass) const {
  if (needs_whole_sequences()) chunk = prompt.most_steps();
  const std::vector<bool> needs_all_tokens = graph->infer.before_tail();
  std::vector<int> piece;
  std::vector<Index> lengths(static_cast<std::size_t>(prompt.count())), later(lengths);
  for (Index t = 0; t < prompt.most_steps(); t += chunk) {
    piece.clear();
    for (Index b = 0; b < prompt.count(); ++b) {
      const Index left = std::max<Index>(0, prompt.steps(b) - t), count = std::min(chunk, left);
      const auto first = ids.begin() + prompt.first(b) + t;
      if (count > 0) piece.insert(piece.end(), first, first + count);
      lengths[std::size_t(b)] = count;
      later[std::size_t(b)] = left - count;
    }
    prepare(state, trace, Index(piece.size()), piece, {pass, lengths}, needs_all_tokens, later);
    run(state, trace, 0, graph->infer.tail(), pass);
    advance(state, trace);
    run_tail(state, chosen, t, y, trace);
  }
}

// The tail, for the chosen tokens of a piece that begins at step `begin`. Each of them is a
// sequence of its own, since operations of the tail may see its position.
template <class S>
void Network<S>::run_tail(State& state, const std::vector<ChosenToken>& chosen, Index begin,
                          Output<S>& y, Trace& trace) const {
  const Plan<S>& plan = graph->infer;
  const Streams& all = trace.streams;
  std::vector<Index> from, to;  // columns
  std::vector<int> ids;
  trace.last_streams.clear();
  for (const ChosenToken& each : chosen) {
    const Index step = each.step - begin;
    if (step < 0 || step >= all.steps(each.sequence)) continue;
    trace.last_streams.add(all.position(each.sequence) + step, 1);
    from.push_back(all.first(each.sequence) + step);
    to.push_back(each.to);
    ids.push_back(trace.ids[std::size_t(from.back())]);
  }
  if (from.empty()) return;
  resize(trace.last, plan, Index(from.size()));
  for (std::size_t i = 0; i < trace.last.size(); ++i)
    for (Index c = 0; trace.values[i].cols() > 0 && c < trace.last[i].cols(); ++c)
      trace.last[i].col(c) = trace.values[i].col(plan.is_constant[i] ? 0 : from[std::size_t(c)]);
  trace.ids.swap(ids);
  trace.values.swap(trace.last);
  std::swap(trace.streams, trace.last_streams);
  run(state, trace, plan.tail(), plan.nodes.size(), Pass::infer);
  const auto last = Forward<S>::template view<const S>(trace.values, plan.out);
  trace.values.swap(trace.last);
  std::swap(trace.streams, trace.last_streams);
  for (std::size_t c = 0; c < to.size(); ++c) y.col(to[c]) = last.col(Index(c));
}

}  // namespace fw::networks
