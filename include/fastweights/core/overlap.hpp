#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <fastweights/core/errors.hpp>
#include <fastweights/core/record.hpp>
#include <fastweights/core/views.hpp>
#include <string>
#include <string_view>
#include <utility>

/// \file
/// Views that share memory. A call that overwrites an entry which it still has to read gives wrong
/// numbers, so every public call refuses an output that has an entry in common with an input or
/// with another output. The comparison is exact: columns of one matrix that lie between each other,
/// as those of stacked heads do, share none.

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// The bytes of a view: `columns` runs of `length` bytes that begin `stride` bytes apart.
struct Region {
  std::string_view prefix, name;  // "the gradient of ", "key"
  std::intptr_t begin;
  std::intptr_t length, columns, stride;
};

template <class View>
EIGEN_ALWAYS_INLINE Region region_of(std::string_view name, const View& view,
                                     std::string_view prefix = {}) {
  if constexpr (requires { view.colStride(); }) {
    constexpr std::intptr_t size = sizeof(typename View::Scalar);
    return {prefix,
            name,
            reinterpret_cast<std::intptr_t>(view.data()),
            view.rows() * size,
            view.cols(),
            view.colStride() * size};
  } else {
    constexpr std::intptr_t size = sizeof(View);
    return {prefix, name, reinterpret_cast<std::intptr_t>(&view), size, 1, size};
  }
}

// All bytes from the first to the last.
struct Bounds {
  std::intptr_t begin, length;
};

template <class View> EIGEN_ALWAYS_INLINE Bounds bounds_of(const View& view) {
  const Region r = region_of({}, view);
  if constexpr (requires { requires View::ColsAtCompileTime == 1; }) return {r.begin, r.length};
  const std::intptr_t to_last = (r.columns - 1) * r.stride;
  return {r.begin + std::min<std::intptr_t>(to_last, 0), std::abs(to_last) + r.length};
}

// 0 or 1, so that many of them make one branch. One comparison says that the distance of the
// beginnings is between the two lengths; without a byte it may be 1 too.
EIGEN_ALWAYS_INLINE unsigned meet(const Bounds& a, const Bounds& b) {
  return unsigned(std::uintptr_t(a.begin - b.begin + a.length - 1) <
                  std::uintptr_t(a.length + b.length - 1));
}

/// Views in a fixed array, to be compared with others. Room for three records, none of which has
/// more than 12 members.
class Regions {
 public:
  template <class R> Regions& add(const R& record, std::string_view prefix = {}) {
    for_each_member(
        [&](std::string_view name, const auto& view) { add(region_of(name, view, prefix)); },
        record);
    return *this;
  }
  void add(const Region& region) { each_[count_++] = region; }
  const Region* begin() const { return each_.data(); }
  const Region* end() const { return each_.data() + count_; }

 private:
  std::array<Region, 36> each_;
  std::size_t count_ = 0;
};

// Rounds towards −∞, for a divisor above 0.
constexpr std::intptr_t floor_of_ratio(std::intptr_t a, std::intptr_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}

/// True if [0, a) meets one of the runs [distance + j·stride, distance + j·stride + b), first ≤ j ≤
/// last.
constexpr bool meets_a_run(std::intptr_t a, std::intptr_t b, std::intptr_t distance,
                           std::intptr_t stride, std::intptr_t first, std::intptr_t last) {
  const std::intptr_t least = floor_of_ratio(-b - distance, stride) + 1;
  const std::intptr_t most = floor_of_ratio(a - distance - 1, stride);
  return std::max(least, first) <= std::min(most, last);
}

// From the lowest address upwards.
inline Region ascending(Region r) {
  if (r.stride < 0) r.begin += (r.columns - 1) * r.stride;
  r.stride = std::abs(r.stride);
  if (r.columns == 1 || r.stride == 0) {
    r.columns = std::min<std::intptr_t>(r.columns, 1);
    r.stride = std::max<std::intptr_t>(r.length, 1);
  }
  return r;
}

/// True if two views have a byte in common. With equal strides or one column it takes no loop, and
/// in different arrays no division.
inline bool overlap(const Region& x, const Region& y) {
  Region a = ascending(x), b = ascending(y);
  if (a.length < 1 || a.columns < 1 || b.length < 1 || b.columns < 1) return false;
  const auto end = [](const Region& r) { return r.begin + (r.columns - 1) * r.stride + r.length; };
  if (end(a) <= b.begin || end(b) <= a.begin) return false;
  if (a.columns > b.columns) std::swap(a, b);
  const std::intptr_t distance = b.begin - a.begin;
  if (a.columns == 1 || a.stride == b.stride)
    return meets_a_run(a.length, b.length, distance, b.stride, 1 - a.columns, b.columns - 1);
  for (std::intptr_t i = 0; i < a.columns; ++i)
    if (meets_a_run(a.length, b.length, distance - i * a.stride, b.stride, 0, b.columns - 1))
      return true;
  return false;
}

[[noreturn]] FASTWEIGHTS_COLD inline void throw_overlap(std::string_view owner, const Region& a,
                                                        const Region& b) {
  throw_invalid({owner, ": ", a.prefix, a.name, " overlaps ", b.prefix, b.name,
                 " in memory, expected an output with numbers of its own"});
}

// True if two views are the same columns, none of which meets another.
inline bool same_bytes(const Region& a, const Region& b) {
  return a.begin == b.begin && a.length == b.length && a.columns == b.columns &&
         (a.columns == 1 || (a.stride == b.stride && std::abs(a.stride) >= a.length));
}

/// Throws std::invalid_argument if an output has an entry in common with an input or with another
/// output. An output may be the whole input of the name `in_place`.
EIGEN_DONT_INLINE inline void check_regions_apart(std::string_view owner, const Regions& outputs,
                                                  const Regions& inputs,
                                                  std::string_view in_place = {}) {
  for (const Region* a = outputs.begin(); a != outputs.end(); ++a) {
    for (const Region* b = outputs.begin(); b != a; ++b)
      if (overlap(*a, *b)) throw_overlap(owner, *a, *b);
    for (const Region& b : inputs)
      if (overlap(*a, b) && !(b.name == in_place && same_bytes(*a, b))) throw_overlap(owner, *a, b);
  }
}

/// Compares records of views. They are copies, so that a caller that does not call it has no
/// records in memory.
template <class Outputs, class... Inputs>
FASTWEIGHTS_COLD EIGEN_DONT_INLINE void check_records_apart(std::string_view owner,
                                                            std::string_view in_place,
                                                            Outputs outputs, Inputs... inputs) {
  Regions out, in;
  out.add(outputs);
  (in.add(inputs), ...);
  check_regions_apart(owner, out, in, in_place);
}

// Functions with sequences of indices and no lambdas, which compilers would call.
template <class R, std::size_t... I>
EIGEN_ALWAYS_INLINE unsigned meets_a_member([[maybe_unused]] const Bounds& a,
                                            [[maybe_unused]] const R& record,
                                            std::index_sequence<I...>) {
  return (0u | ... | meet(a, bounds_of(std::get<I>(members(record)))));
}
template <class R> EIGEN_ALWAYS_INLINE unsigned meets_a_member(const Bounds& a, const R& record) {
  return meets_a_member(a, record, std::make_index_sequence<member_count<R>>{});
}
template <std::size_t I, class Outputs, class... Inputs>
EIGEN_ALWAYS_INLINE unsigned output_meets(const Outputs& outputs, const Inputs&... inputs) {
  const Bounds a = bounds_of(std::get<I>(members(outputs)));
  return meets_a_member(a, outputs, std::make_index_sequence<I>{}) |
         (0u | ... | meets_a_member(a, inputs));
}
template <class Outputs, std::size_t... I, class... Inputs>
EIGEN_ALWAYS_INLINE unsigned outputs_meet(std::index_sequence<I...>, const Outputs& outputs,
                                          const Inputs&... inputs) {
  return (0u | ... | output_meets<I>(outputs, inputs...));
}

/// Compares at the cost of one comparison for each pair: first the bounds, and only if they
/// meet the views.
template <class Outputs, class... Inputs>
EIGEN_ALWAYS_INLINE void check_apart(std::string_view owner, const Outputs& outputs,
                                     const Inputs&... inputs) {
  if (outputs_meet(std::make_index_sequence<member_count<Outputs>>{}, outputs, inputs...) != 0)
    check_records_apart(owner, {}, outputs, inputs...);
}
/// The same where an output may be the whole value.
template <class Outputs, class... Inputs>
EIGEN_ALWAYS_INLINE void check_apart_or_in_place(std::string_view owner, const Outputs& outputs,
                                                 const Inputs&... inputs) {
  if (outputs_meet(std::make_index_sequence<member_count<Outputs>>{}, outputs, inputs...) != 0)
    check_records_apart(owner, "value", outputs, inputs...);
}

}  // namespace fw::detail
