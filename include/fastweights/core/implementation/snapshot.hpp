#pragma once

#include <algorithm>
#include <cstring>
#include <fastweights/core/errors.hpp>
#include <fastweights/core/implementation/inline.hpp>
#include <fastweights/core/snapshot.hpp>

/// \file
/// The functions of core/snapshot.hpp.

namespace fw::inline FASTWEIGHTS_ABI {

namespace detail {

// Calls f(leaf, path, i) for the i-th array or number.
template <class F> void for_each_array(const Object& state, const F& f) {
  std::size_t i = 0;
  visit_leaves(&state, 1, [&](const Leaf* leaf, const LeafPath& path) { f(*leaf, path, i++); });
}

}  // namespace detail

FASTWEIGHTS_INLINE std::size_t Snapshot::page_bytes(const Array& array, std::size_t page) {
  return std::min(page_size, array.bytes() - page * page_size);
}

// A copy, or the one page of zeros: the room of a cache is full of them.
FASTWEIGHTS_INLINE Snapshot::Page Snapshot::page_of(const std::byte* from, std::size_t bytes) {
  static const Page zeros(new std::byte[page_size]());
  if (bytes == page_size && std::memcmp(from, zeros.get(), bytes) == 0) return zeros;
  const std::shared_ptr<std::byte[]> page(new std::byte[bytes]);
  std::memcpy(page.get(), from, bytes);
  return page;
}

FASTWEIGHTS_INLINE void Snapshot::take(const detail::Object& state, const Snapshot& before) {
  detail::for_each_array(
      state, [&](const detail::Leaf& leaf, const detail::LeafPath& path, std::size_t i) {
        if (!leaf.is_trivial)
          detail::throw_invalid({"Snapshot: the bytes of ", path.text(),
                                 " are not its value, expected numbers such as float"});
        Array array{path.text(), leaf.rows, leaf.cols, leaf.scalar, leaf.width, {}};
        const Array* earlier = i < before.arrays_.size() ? &before.arrays_[i] : nullptr;
        const auto* data = static_cast<const std::byte*>(leaf.data);
        for (std::size_t p = 0; p * page_size < array.bytes(); ++p) {
          const std::byte* from = data + p * page_size;
          const std::size_t n = page_bytes(array, p);
          const bool shares = earlier != nullptr && p < earlier->pages.size() &&
                              page_bytes(*earlier, p) == n &&
                              std::memcmp(earlier->pages[p].get(), from, n) == 0;
          array.pages.push_back(shares ? earlier->pages[p] : page_of(from, n));
        }
        arrays_.push_back(std::move(array));
      });
}

FASTWEIGHTS_INLINE void Snapshot::check(const detail::Object& state) const {
  std::size_t count = 0;
  detail::for_each_array(state, [&](const detail::Leaf& leaf, const detail::LeafPath& path,
                                    std::size_t i) {
    ++count;
    if (i >= arrays_.size()) return;
    const Array& array = arrays_[i];
    const std::string name = path.text();
    if (name != array.path)
      detail::throw_invalid({"Snapshot: the state has ", name, ", expected ", array.path});
    if (leaf.scalar != array.scalar || leaf.width != array.width)
      detail::throw_invalid({"Snapshot: ", name, " of the state has numbers of ",
                             std::to_string(leaf.width), " bytes, expected ",
                             std::to_string(array.width), " bytes and the type of those taken"});
    if (leaf.rows != array.rows || (leaf.cols != array.cols && !leaf.grows()))
      detail::throw_invalid({"Snapshot: ", name, " of the state is ", std::to_string(leaf.rows),
                             " x ", std::to_string(leaf.cols), ", expected ",
                             std::to_string(array.rows), " x ", std::to_string(array.cols)});
  });
  if (count != arrays_.size())
    detail::throw_invalid({"Snapshot: the state has ", std::to_string(count),
                           " arrays or numbers, expected ", std::to_string(arrays_.size())});
}

FASTWEIGHTS_INLINE void Snapshot::give(const detail::Object& state) const {
  check(state);
  detail::for_each_array(state, [&](const detail::Leaf& leaf, const auto&, std::size_t i) {
    const Array& array = arrays_[i];
    detail::Leaf to = leaf;
    if (to.grows()) to.resize(array.cols);
    for (std::size_t p = 0; p < array.pages.size(); ++p)
      std::memcpy(static_cast<std::byte*>(to.data) + p * page_size, array.pages[p].get(),
                  page_bytes(array, p));
  });
}

FASTWEIGHTS_INLINE std::size_t Snapshot::bytes() const {
  std::size_t sum = 0;
  for (const Array& array : arrays_) sum += array.bytes();
  return sum;
}

FASTWEIGHTS_INLINE std::size_t Snapshot::shared_bytes(const Snapshot& other) const {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < std::min(arrays_.size(), other.arrays_.size()); ++i) {
    const Array &own = arrays_[i], &theirs = other.arrays_[i];
    for (std::size_t p = 0; p < std::min(own.pages.size(), theirs.pages.size()); ++p)
      if (own.pages[p] == theirs.pages[p]) sum += page_bytes(own, p);
  }
  return sum;
}

}  // namespace fw
