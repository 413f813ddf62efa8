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

// The numbers of a view, whose rows may have any distance: one region, or one for each row.
template <class S>
void add_regions(std::vector<Region>& to, std::string_view name, const AnyView<S>& v) {
  constexpr std::intptr_t size = sizeof(S);
  const auto begin = reinterpret_cast<std::intptr_t>(v.data);
  if (v.row_stride == 1 || v.rows <= 1)
    to.push_back({{}, name, begin, v.rows * size, v.cols, v.col_stride * size});
  else if (v.col_stride == 1)
    to.push_back({{}, name, begin, v.cols * size, v.rows, v.row_stride * size});
  else
    for (Index i = 0; i < v.rows; ++i)
      to.push_back({{}, name, begin + i * v.row_stride * size, size, v.cols, v.col_stride * size});
}
template <class S>
std::vector<Region> regions_of(const AnyViews<S>& views, std::span<const SignatureMember> members) {
  std::vector<Region> regions;
  for (std::size_t i = 0; i < views.size(); ++i) add_regions(regions, members[i].name, views[i]);
  return regions;
}

// As check_apart, for the rows of all heads.
inline void check_heads_apart(std::string_view rule, const std::vector<Region>& outputs,
                              const std::vector<Region>& inputs) {
  for (const Region& a : outputs) {
    for (const Region& b : outputs)
      if (a.name != b.name && overlap(a, b)) throw_overlap(rule, a, b);
    for (const Region& b : inputs)
      if (overlap(a, b)) throw_overlap(rule, a, b);
  }
}

// As check_outside, for the states of all heads.
template <class S>
void check_heads_outside(std::string_view rule, std::span<const AnyState<S>> heads,
                         const std::vector<Region>& outputs, const std::vector<Region>& inputs) {
  for (const AnyState<S>& state : heads) {
    const Object object = state.object();
    visit_leaves(&object, 1, [&](const Leaf* leaf, const LeafPath& path) {
      const auto size = leaf->size() * static_cast<std::intptr_t>(leaf->width);
      const Region own{"the state's ", path.name, reinterpret_cast<std::intptr_t>(leaf->data),
                       size,           1,         size};
      check_region_outside(rule, own, outputs, inputs);
    });
  }
}

}  // namespace detail

template <class S>
void AnyMemory<S>::step(std::span<State> states, Inputs written, Inputs queries, Outputs outputs,
                        bool parallel) const {
  require(!Eigen::NumTraits<S>::IsComplex, "steps of several streams");
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
  const auto outs = detail::regions_of(outputs, rule_->given);
  auto ins = detail::regions_of(written, rule_->written);
  const auto asked = detail::regions_of(queries, rule_->read_with);
  ins.insert(ins.end(), asked.begin(), asked.end());
  detail::check_heads_apart(name(), outs, ins);
  const Index steps = detail::steps_in(written[0].cols, rule_->written[0].extent());
  for (const State& state : heads) rule_->check_capacity(state, steps);
  detail::check_heads_outside<S>(name(), heads, outs, ins);
  parallel_for(count, parallel, [&](Index h) {
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
  if (!other || !detail::same_shapes(state.object(), other.object(), true))
    detail::throw_invalid({name(), ": the state is empty or of other sizes"});
  detail::convert(other.object(), state.object());
  return state;
}

}  // namespace fw
