#pragma once

#include <cstdint>
#include <fastweights/core/overlap.hpp>
#include <fastweights/core/record.hpp>
#include <string_view>
#include <type_traits>
#include <utility>

/// \file
/// Views that lie in a state, such as `state.W.col(0)`. A call that changes the state would
/// overwrite what it still has to read, or its own answer, so it refuses them by name.

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// A matrix or a number of a state, whose bytes are contiguous.
template <class T>
EIGEN_ALWAYS_INLINE Region region_of_member(std::string_view name, const T& member,
                                            std::string_view prefix = {}) {
  if constexpr (requires { member.data(); }) {
    const std::intptr_t size = member.size() * std::intptr_t(sizeof(*member.data()));
    return {prefix, name, reinterpret_cast<std::intptr_t>(member.data()), size, 1, size};
  } else {
    return {prefix, name, reinterpret_cast<std::intptr_t>(&member), sizeof(T), 1, sizeof(T)};
  }
}

// Functions with sequences of indices and no lambdas, as those of overlap.hpp.
template <class T, class... Records>
EIGEN_ALWAYS_INLINE unsigned state_meets(const T& member, const Records&... records);
template <class R, std::size_t... I, class... Records>
EIGEN_ALWAYS_INLINE unsigned members_meet([[maybe_unused]] const R& state,
                                          std::index_sequence<I...>,
                                          [[maybe_unused]] const Records&... records) {
  return (0u | ... | state_meets(std::get<I>(members(state)), records...));
}
// Counters are no numbers that a view may have.
template <class T, class... Records>
EIGEN_ALWAYS_INLINE unsigned state_meets([[maybe_unused]] const T& member,
                                         [[maybe_unused]] const Records&... records) {
  if constexpr (Record<T>) {
    return members_meet(member, std::make_index_sequence<member_count<T>>{}, records...);
  } else if constexpr (is_record_list<T>) {
    unsigned any = 0;
    for (const auto& each : member) any |= state_meets(each, records...);
    return any;
  } else if constexpr (std::is_integral_v<T>) {
    return 0;
  } else {
    const Region r = region_of_member({}, member);
    return (0u | ... | meets_a_member(Bounds{r.begin, r.length}, records));
  }
}

/// Throws std::invalid_argument if an output or an input has a byte in common with a member.
template <class Outputs, class Inputs>
void check_region_outside(std::string_view owner, const Region& own, const Outputs& outputs,
                          const Inputs& inputs) {
  for (const Region& each : outputs)
    if (overlap(each, own)) throw_overlap(owner, each, own);
  for (const Region& each : inputs)
    if (overlap(own, each)) throw_overlap(owner, own, each);
}

/// Compares all members of a state.
template <class T>
void check_regions_outside(std::string_view owner, std::string_view prefix, std::string_view name,
                           const T& member, const Regions& outputs, const Regions& inputs) {
  if constexpr (Record<T>) {
    for_each_member(
        [&](std::string_view its_name, const auto& its) {
          check_regions_outside(owner, prefix, its_name, its, outputs, inputs);
        },
        member);
  } else if constexpr (is_record_list<T>) {
    for (const auto& each : member)
      check_regions_outside(owner, prefix, name, each, outputs, inputs);
  } else if constexpr (!std::is_integral_v<T>) {
    check_region_outside(owner, region_of_member(name, member, prefix), outputs, inputs);
  }
}

/// Compares records of views, as copies.
template <class State, class Outputs, class... Inputs>
FASTWEIGHTS_COLD EIGEN_DONT_INLINE void check_records_outside(std::string_view owner,
                                                              const State& state, Outputs outputs,
                                                              Inputs... inputs) {
  Regions out, in;
  out.add(outputs);
  (in.add(inputs), ...);
  check_regions_outside(owner, "the state's ", {}, state, out, in);
}

/// Outputs of a call that has none.
struct NoViews {
  static constexpr auto names = fw::names();
};

/// Compares at the cost of a comparison for each pair of a member and a view.
template <class State, class Outputs, class... Inputs>
EIGEN_ALWAYS_INLINE void check_outside(std::string_view owner, const State& state,
                                       const Outputs& outputs, const Inputs&... inputs) {
  if (state_meets(state, outputs, inputs...) != 0)
    check_records_outside(owner, state, outputs, inputs...);
}

}  // namespace fw::detail
