#pragma once

#include <array>
#include <cstddef>
#include <fastweights/core/errors.hpp>
#include <fastweights/core/views.hpp>
#include <string>
#include <vector>

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Rows of a buffer. A buffer has one column per token, or a single column if it is constant: a
/// parameter, or what is computed from parameters alone.
struct Slice {
  std::size_t buffer = 0;  ///< its index
  Index first = 0;         ///< the first row
  Index rows = 0;          ///< the number of rows
};

template <class S> class Builder;

/// The builder of a value. A value that was declared and never set has none: whatever asks for it
/// throws std::invalid_argument.
template <class S> class BuilderPointer {
 public:
  /// No builder, or this one.
  BuilderPointer(Builder<S>* builder = nullptr) : builder_(builder) {}

  /// The builder.
  Builder<S>& operator*() const {
    if (builder_ == nullptr)
      fw::detail::throw_invalid(
          {"Value: belongs to no network, expected one that a function of "
           "networks returned"});
    return *builder_;
  }
  Builder<S>* operator->() const { return &**this; }
  /// True if it is this builder.
  bool operator==(const Builder<S>* builder) const { return builder_ == builder; }

 private:
  Builder<S>* builder_;
};

/// A quantity of a network that is being built: rows × tokens. Functions and operators of values
/// add operations to the network. A value is valid as long as its builder.
template <class S> struct Value {
  using Scalar = S;
  BuilderPointer<S> builder;  ///< of the network that it belongs to
  Slice slice;                ///< where it is

  /// The number of rows.
  Index rows() const { return static_cast<void>(*builder), slice.rows; }

  /// `count` rows from row `first` on, without a copy.
  Value rows_of(Index first, Index count) const {
    if (first < 0 || count < 1 || first > rows() - count)
      fw::detail::throw_invalid({builder->path(), ": ", std::to_string(count), " rows from row ",
                                 std::to_string(first), " of a value with ",
                                 std::to_string(rows())});
    return {builder, {slice.buffer, slice.first + first, count}};
  }

  /// Rows of each of `parts` equal parts, such as heads.
  Index rows_of_part(Index parts) const {
    if (parts < 1 || rows() % parts != 0)
      fw::detail::throw_invalid({builder->path(), ": ", std::to_string(rows()),
                                 " rows do not divide into ", std::to_string(parts),
                                 " equal parts"});
    return rows() / parts;
  }
};

/// Consecutive rows: `sizes` must add up to all of them.
template <std::size_t N, class S>
std::array<Value<S>, N> split(const Value<S>& x, const std::array<Index, N>& sizes) {
  std::array<Value<S>, N> parts;
  Index first = 0;
  for (std::size_t i = 0; i < N; first += sizes[i++]) parts[i] = x.rows_of(first, sizes[i]);
  if (first != x.rows())
    fw::detail::throw_mismatch(x.builder->path(), "a split", first, "rows", x.rows(), "the value");
  return parts;
}

}  // namespace fw::networks
