#pragma once

#include <fastweights/networks/operations/memory.hpp>

namespace fw::inline FASTWEIGHTS_ABI::networks {

namespace detail {

template <class S>
void check_reads_after_writes(const std::string& path, const AnyMemory<S>& rule) {
  if (!rule.can().reads_after_writes)
    fw::detail::throw_invalid({path, ": the full form of ", rule.name(),
                               " was requested, expected a memory with write_vjp, read_vjp and a "
                               "read that does not change the state"});
  const Index width = rule.given()[0].width;
  if (width != 1)
    fw::detail::throw_invalid({path, ": the full form of ", rule.name(), " has outputs of ",
                               std::to_string(width), " columns a token, expected 1"});
}

}  // namespace detail

/// Writes the first values and reads with the second, as memory() does, but every token reads the
/// writes of all tokens: those of the pass, which must contain the whole sequence, and those before
/// it. Reads twice. Throws std::invalid_argument when a size does not fit, and for a memory without
/// write_vjp and read_vjp, one that a read changes, or one with several columns of outputs a token.
template <class S>
Value<S> full_memory(AnyMemory<S> rule, const std::vector<Value<S>>& written,
                     const std::vector<Value<S>>& queries, const std::string& state_name = "memory",
                     const LearnedState<S>& learned = {}) {
  detail::check_reads_after_writes(written.at(0).builder->path(state_name), rule);
  return detail::run_memory(std::move(rule), written, queries, state_name, learned, true);
}

/// The full form of a rule.
template <Memory M, class S = typename M::Scalar>
Value<S> full_memory(M rule, const std::vector<Value<S>>& written,
                     const std::vector<Value<S>>& queries, const std::string& state_name = "memory",
                     const LearnedState<S>& learned = {}) {
  return full_memory(AnyMemory<S>(std::move(rule)), written, queries, state_name, learned);
}

}  // namespace fw::networks
