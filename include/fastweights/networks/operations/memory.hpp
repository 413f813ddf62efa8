#pragma once

#include <fastweights/networks/operations/run_memory.hpp>

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Writes the first values and reads with the second, in the order of the memory's signature. Gives
/// the outputs of all heads. `slow` are the memory's slow weights, if they are learned: constants,
/// for every state or for several.
template <Memory M, class S = typename M::Scalar>
Value<S> memory(const M& rule, const std::vector<Value<S>>& written,
                const std::vector<Value<S>>& queries, const std::string& state_name = "memory",
                const std::vector<Value<S>>& slow = {}) {
  Builder<S>& builder = *written.at(0).builder;
  const std::string path = builder.path(state_name);
  auto sizes = rule.signature();
  std::vector<Index> heads;
  std::vector<Value<S>> in;
  const auto take = [&](const std::vector<Value<S>>& given, auto extents) {
    std::size_t i = 0;
    if (given.size() != member_count<decltype(extents)>)
      fw::detail::throw_mismatch(path, "the memory", Index(given.size()), "inputs",
                                 Index(member_count<decltype(extents)>), "the signature");
    for_each_member(
        [&](std::string_view name, const MemberExtent& e) {
          const MemberExtent each = fw::detail::per_token(e);
          const Value<S>& value = given[i++];
          if (value.rows() % (each.rows * each.width) != 0)
            fw::detail::throw_mismatch(path, name, value.rows(), "rows", each.rows * each.width,
                                       "a head");
          if (each.width > 1 && value.rows() != builder.buffer_rows(value))
            fw::detail::throw_invalid({path, ": ", name, " is a part of a value; copy it first"});
          if (builder.is_constant(value))
            fw::detail::throw_invalid({path, ": ", name, " is constant, expected one a token"});
          heads.push_back(value.rows() / (each.rows * each.width));
          in.push_back(value);
        },
        extents);
  };
  take(written, sizes.write());
  take(queries, sizes.read());
  RunMemory<S, M> operation(rule, heads);
  for (const Index each : heads)
    if (operation.heads % each != 0 || (operation.heads % operation.states != 0))
      fw::detail::throw_invalid({path, ": ", std::to_string(each), " heads do not divide ",
                                 std::to_string(operation.heads)});
  if constexpr (KeepsSlowWeights<M>) {
    std::vector<Index> entries;  // of every slow weight
    auto extents = rule.state_extents().slow;
    for_each_leaf([&](const MemberExtent& e) { entries.push_back(e.rows * e.width); }, extents);
    if (!slow.empty() && slow.size() != entries.size())
      fw::detail::throw_mismatch(path, "the memory", Index(slow.size()), "slow weights",
                                 Index(entries.size()), "its state");
    for (std::size_t i = 0; i < slow.size(); ++i) {
      if (slow[i].rows() % entries[i] != 0 || operation.states * entries[i] % slow[i].rows() != 0 ||
          !builder.is_constant(slow[i]))
        fw::detail::throw_invalid(
            {path, ": slow weights must be constant and divide among the states"});
      in.push_back(slow[i]);
    }
  } else if (!slow.empty()) {
    fw::detail::throw_invalid({path, ": ", M::name, " has no slow weights"});
  }
  auto out = sizes.out();
  const Index rows = operation.heads * std::get<0>(members(out)).rows;
  return builder.add(std::move(operation), rows, std::move(in), {}, state_name);
}

}  // namespace fw::networks
