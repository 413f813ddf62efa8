#pragma once

#include <fastweights/core/views.hpp>
#include <fastweights/feature_maps/feature_map.hpp>
#include <tuple>

/// \file
/// Feature maps take any Eigen operands. The helpers below turn operands with contiguous columns
/// into Eigen::Map first, so that a map's body is compiled once for a scalar and a number of rows,
/// not once for every matrix, map and block type. Other operands, such as expressions and row-major
/// matrices, are passed on unchanged.

namespace fw::inline FASTWEIGHTS_ABI::detail {

template <class X>
inline constexpr bool has_contiguous_columns =
    (X::Flags & Eigen::DirectAccessBit) != 0 &&
    (X::RowsAtCompileTime == 1 || (!X::IsRowMajor && X::InnerStrideAtCompileTime == 1));

// The scalar type behind x.data(): const for an operand that cannot be written.
template <class X> using EntryOf = std::remove_pointer_t<decltype(std::declval<X&>().data())>;

template <class X, int Rows> using VectorOf = Eigen::Map<ConstPlainArray<EntryOf<X>, Rows, 1>>;
template <class X>
using ViewOf = ColumnMap<EntryOf<X>, X::RowsAtCompileTime, X::ColsAtCompileTime == 1 ? 1 : Dynamic>;

// `count` columns of x from column `first` on.
template <class X> auto view_columns(X& x, Index first, Index count) {
  return ViewOf<X>(
      x.data() + first * x.colStride(), x.rows(), count,
      column_stride<ViewOf<X>::RowsAtCompileTime, ViewOf<X>::ColsAtCompileTime>(x.colStride()));
}

template <class X> auto view_column(X& x, Index t) {
  return VectorOf<X, X::RowsAtCompileTime>(x.data() + t * x.colStride(), x.rows());
}

// Calls f with views of the operands.
template <class F, class... X> void with_views(const F& f, X&... x) {
  if constexpr ((has_contiguous_columns<X> && ...)) {
    auto views = std::tuple(view_columns(x, 0, x.cols())...);
    std::apply(f, views);
  } else {
    f(x...);
  }
}

// Calls f with columns 0, 1, … of the operands.
template <class F, class... X> void for_each_column(Index cols, const F& f, X&... x) {
  for (Index t = 0; t < cols; ++t)
    if constexpr ((has_contiguous_columns<X> && ...))
      f(view_column(x, t)...);
    else
      f(x.col(t)...);
}

// Calls f with vectors that together hold all entries of the operands, which have the same size
// and `cols` columns: one vector where no operand has gaps between its columns.
template <class F, class... X> void for_each_vector(Index cols, const F& f, X&... x) {
  if constexpr ((has_contiguous_columns<X> && ...)) {
    if (((cols <= 1 || x.colStride() == x.rows()) && ...))
      f(VectorOf<X, X::SizeAtCompileTime>(x.data(), x.size())...);
    else if constexpr (((X::ColsAtCompileTime != 1) && ...))
      for (Index t = 0; t < cols; ++t)
        f(VectorOf<X, Dynamic>(x.data() + t * x.colStride(), x.rows())...);
  } else {
    f(x...);
  }
}

// A map of single entries: M has map_vector(x, y) and vjp_vector(y, dy, dx) for vectors of any
// length.
template <class M> struct ElementwiseMap : KeepsRows {
  template <class X, class Y> void map(const X& x, Y& y) const {
    for_each_vector(
        x.cols(), [](const auto& in, auto&& out) { M::map_vector(in, out); }, x, y);
  }
  template <class X, class Y, class Dy, class Dx>
  void vjp(const X&, const Y& y, const Dy& dy, Dx& dx) const {
    for_each_vector(
        y.cols(),
        [](const auto& out, const auto& dout, auto&& din) { M::vjp_vector(out, dout, din); }, y, dy,
        dx);
  }
};

// A map of single columns: M has map_column(x, y) and vjp_column(x, y, dy, dx).
template <class M> struct ColumnwiseMap : KeepsRows {
  template <class X, class Y> void map(const X& x, Y& y) const {
    for_each_column(
        x.cols(), [](const auto& in, auto&& out) { M::map_column(in, out); }, x, y);
  }
  template <class X, class Y, class Dy, class Dx>
  void vjp(const X& x, const Y& y, const Dy& dy, Dx& dx) const {
    for_each_column(
        y.cols(),
        [](const auto& in, const auto& out, const auto& dout, auto&& din) {
          M::vjp_column(in, out, dout, din);
        },
        x, y, dy, dx);
  }
};

}  // namespace fw::detail
