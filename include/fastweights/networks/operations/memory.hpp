#pragma once

#include <fastweights/networks/operations/run_memory.hpp>

namespace fw::inline FASTWEIGHTS_ABI::networks {

namespace detail {

// The number of heads that `value` has, an input of the memory at `path`.
template <class S>
HeadMember head_member(const std::string& path, const SignatureMember& member,
                       const Value<S>& value, const Builder<S>& builder) {
  const MemberExtent each = fw::detail::per_token(member.extent());
  const Index entries = each.rows * each.width;
  if (value.rows() % entries != 0)
    fw::detail::throw_mismatch(path, member.name, value.rows(), "rows", entries, "a head");
  if (each.width > 1 && value.rows() != builder.buffer_rows(value))
    fw::detail::throw_invalid({path, ": ", member.name, " is a part of a value; copy it first"});
  if (builder.is_constant(value))
    fw::detail::throw_invalid({path, ": ", member.name, " is constant, expected one a token"});
  return {value.rows() / entries, each.rows, each.width};
}

// The same for all that is written, or read with.
template <class S>
void add_head_members(const std::string& path, std::span<const SignatureMember> expected,
                      const std::vector<Value<S>>& given, const Builder<S>& builder,
                      std::vector<HeadMember>& members) {
  if (given.size() != expected.size())
    fw::detail::throw_mismatch(path, "the memory", Index(given.size()), "inputs",
                               Index(expected.size()), "the signature");
  for (std::size_t i = 0; i < given.size(); ++i)
    members.push_back(head_member(path, expected[i], given[i], builder));
}

template <class S>
void check_learned(const std::string& path, const RunMemory<S>& operation,
                   const std::vector<Value<S>>& given, const Builder<S>& builder) {
  if (given.empty()) return;
  const bool slow = operation.learned == Learned::slow_weights;
  if (slow && !operation.memory.can().keeps_slow_weights)
    fw::detail::throw_invalid({path, ": ", operation.memory.name(), " has no slow weights"});
  if (!slow && operation.memory.can().grows)
    fw::detail::throw_invalid({path, ": the state of ", operation.memory.name(),
                               " grows, expected one of constant size to learn the first one"});
  std::vector<Index> entries;  // of every array
  for_each_learned(
      operation.memory.initial_state(), operation.learned,
      [&](const fw::detail::Leaf& leaf, const auto&) { entries.push_back(leaf.size()); });
  const char* const what = slow ? "slow weights" : "arrays of the first state";
  if (given.size() != entries.size())
    fw::detail::throw_mismatch(path, "the memory", Index(given.size()), what, Index(entries.size()),
                               "its state");
  for (std::size_t i = 0; i < given.size(); ++i)
    if (given[i].rows() % entries[i] != 0 || operation.states * entries[i] % given[i].rows() != 0 ||
        !builder.is_constant(given[i]))
      fw::detail::throw_invalid(
          {path, ": ", what, " must be constant and divide among the states"});
}

}  // namespace detail

/// The parameters of a memory besides what it writes: constants, for every state or for
/// several, one an array of the state, column by column. Without values it learns nothing.
template <class S> struct LearnedState {
  std::vector<Value<S>> values = {};        ///< in the order of the state's arrays
  Learned learned = Learned::slow_weights;  ///< which arrays they are

  LearnedState() = default;
  /// Slow weights.
  LearnedState(std::vector<Value<S>> slow) : values(std::move(slow)) {}  // NOLINT: implicit
  /// Slow weights.
  LearnedState(std::initializer_list<Value<S>> slow) : values(slow) {}
  /// These arrays.
  LearnedState(std::vector<Value<S>> v, Learned which) : values(std::move(v)), learned(which) {}
};

namespace detail {

// The operation of memory() and full_memory().
template <class S>
Value<S> run_memory(AnyMemory<S> rule, const std::vector<Value<S>>& written,
                    const std::vector<Value<S>>& queries, const std::string& state_name,
                    const LearnedState<S>& learned, bool reads_after_writes) {
  Builder<S>& builder = *written.at(0).builder;
  const std::string path = builder.path(state_name);
  if (rule.given().size() != 1)
    fw::detail::throw_mismatch(path, "the memory", Index(rule.given().size()), "outputs", 1,
                               "a network");
  std::vector<HeadMember> members;
  add_head_members(path, rule.written(), written, builder, members);
  add_head_members(path, rule.read_with(), queries, builder, members);
  const MemberExtent given = fw::detail::per_token(rule.given()[0].extent());
  RunMemory<S> operation(std::move(rule), std::move(members));
  operation.learned = learned.learned;
  operation.reads_after_writes = reads_after_writes;
  for (const HeadMember& each : operation.members)
    if (operation.heads % each.heads != 0 || operation.heads % operation.states != 0)
      fw::detail::throw_invalid({path, ": ", std::to_string(each.heads), " heads do not divide ",
                                 std::to_string(operation.heads)});
  check_learned(path, operation, learned.values, builder);
  std::vector<Value<S>> in = written;
  in.insert(in.end(), queries.begin(), queries.end());
  in.insert(in.end(), learned.values.begin(), learned.values.end());
  const Index all_rows = operation.heads * given.rows * given.width;
  return builder.add(std::move(operation), all_rows, std::move(in), {}, state_name);
}

}  // namespace detail

/// Writes the first values and reads with the second, in the order of Write and Read of the
/// memory's signature (core/signatures.hpp, core/decay_signatures.hpp), such as k, v, β, α and q.
/// Gives the outputs of all heads. A first state that is learned starts every sequence at position
/// 0, and has the gradients of the passes that begin there. A memory of any type converts to an
/// AnyMemory, so this is compiled once.
template <class S>
Value<S> memory(AnyMemory<S> rule, const std::vector<Value<S>>& written,
                const std::vector<Value<S>>& queries, const std::string& state_name = "memory",
                const LearnedState<S>& learned = {}) {
  return detail::run_memory(std::move(rule), written, queries, state_name, learned, false);
}

/// The memory of a rule.
template <Memory M, class S = typename M::Scalar>
Value<S> memory(M rule, const std::vector<Value<S>>& written, const std::vector<Value<S>>& queries,
                const std::string& state_name = "memory", const LearnedState<S>& learned = {}) {
  return memory(AnyMemory<S>(std::move(rule)), written, queries, state_name, learned);
}

}  // namespace fw::networks
