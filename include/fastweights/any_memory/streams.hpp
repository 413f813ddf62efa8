#pragma once

#include <fastweights/any_memory/any_memory.hpp>

/// \file
/// Several streams or heads of a memory that is chosen at run time, and states in another scalar.

namespace fw::inline FASTWEIGHTS_ABI {

namespace detail {

// The views of one head.
template <class S, class F>
std::vector<AnyView<S>> parts_of(const AnyViews<S>& views, std::span<const SignatureMember> members,
                                 const F& part) {
  std::vector<AnyView<S>> parts;
  parts.reserve(views.size());
  for (std::size_t i = 0; i < views.size(); ++i) parts.push_back(part(views[i], members[i]));
  return parts;
}

// Throws unless the rows of every member are those of all heads.
template <class S>
void check_stacked(std::string_view rule, const AnyViews<S>& views,
                   std::span<const SignatureMember> members, Index heads) {
  for (std::size_t i = 0; i < members.size(); ++i)
    if (views[i].rows != heads * members[i].rows)
      throw_mismatch(rule, members[i].name, views[i].rows, "rows", heads * members[i].rows,
                     "the heads");
}

}  // namespace detail

template <class S>
void AnyMemory<S>::step(std::span<State> states, Inputs written, Inputs queries, Outputs outputs,
                        bool parallel) const {
  check_records(written, queries, outputs);
  rule_->step(states, written, queries, outputs, parallel);
}

template <class S>
void AnyMemory<S>::scan(std::span<State> heads, Inputs written, Inputs queries, Outputs outputs,
                        bool parallel) const {
  check_records(written, queries, outputs);
  const auto count = static_cast<Index>(heads.size());
  detail::check_stacked(name(), written, rule_->written, count);
  detail::check_stacked(name(), queries, rule_->read_with, count);
  detail::check_stacked(name(), outputs, rule_->given, count);
  for_each_head(count, parallel, [&](Index h) {
    const auto head = [h](const auto& view, const SignatureMember& m) {
      return view.rows_of(h * m.rows, m.rows);
    };
    const auto w = detail::parts_of(written, this->written(), head);
    const auto r = detail::parts_of(queries, this->read_with(), head);
    const auto y = detail::parts_of(outputs, this->given(), head);
    rule_->scan(heads[static_cast<std::size_t>(h)], w, r, y);
  });
}

template <class S>
template <class T>
AnyState<S> AnyMemory<S>::state_from(const AnyState<T>& other) const {
  State state = initial_state();
  if (!other || !detail::same_shapes(state.object(), other.object()))
    detail::throw_invalid({name(), ": the state is empty or of other sizes"});
  detail::convert(other.object(), state.object());
  return state;
}

}  // namespace fw
