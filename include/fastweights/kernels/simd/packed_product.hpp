#pragma once

#include <algorithm>
#include <fastweights/kernels/simd/register_products.hpp>

/// \file
/// C = A B or C += A B for float and double, without heap, near the peak of multiply-adds. A is cut
/// into panels of some rows and at most 128 columns. A panel is copied so that its columns follow
/// each other, and stays in the first-level cache while all columns of B pass. An entry of C is
/// summed in registers over the columns of a panel, in their order: it has the same bits, but for
/// the sign of a zero, for any number of rows and columns of C.

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// The sizes of a tile of C, which is R packets of rows and columns<R> columns. Its sums, a column
/// of A and an entry of B are in registers.
struct Tile {
  static constexpr bool many_registers = EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS >= 32;
  static constexpr int packets = many_registers ? 4 : 2;
  template <int R> static constexpr int columns = std::min(12, (many_registers ? 24 : 12) / R);
  static constexpr Index depth = 128;  // columns of A in a panel
  static constexpr Index few = 16;     // columns of C that do not repay a copy of a panel
};

/// A factor of a product: entry (i, k) is data[i·row + k·column], and one of the two is 1.
template <class S> struct Factor {
  const S* data;
  Index row, column;
  Factor from(Index i, Index k) const { return {data + i * row + k * column, row, column}; }
};

/// The result C of a product, with columns `stride` apart. `adds`: C += A B, else C = A B.
template <class S> struct Target {
  S* data;
  Index stride;
  bool adds;
  Target from(Index i, Index j) const { return {data + i + j * stride, stride, adds}; }
};

/// Stores or adds a column, without its first `skipped` rows and those from `end` on.
template <class Column, class S>
EIGEN_ALWAYS_INLINE void put_column(const Column& x, S* to, bool adds, Index skipped, Index end) {
  if (skipped == 0 && end == Column::size) {
    Column sum = adds ? Column::load(to) : Column::all(S(0));
    sum.add(x);
    sum.store(to);
  } else {
    S part[Column::size];
    x.store(part);
    for (Index i = skipped; i < end; ++i) to[i] = (adds ? to[i] : S(0)) + part[i];
  }
}

/// The product for R packets of rows and N columns of C. It has one path for all, without branches:
/// with more, GCC keeps the sums in memory.
template <class S, int R, int N>
EIGEN_DONT_INLINE void multiply_tile(const LeftFactor<S>& a, const RightFactor<S>& b, Index depth,
                                     const Target<S>& c) {
  using Column = Rows<S, R>;
  RegisterTuple<Column, N> sums;
  set_zero<S>(sums);
  add_product(sums, a, b, depth);
  static constexpr S zeros[Column::size] = {};
  const S* const before = c.adds ? c.data : zeros;
  const Index step = c.adds ? c.stride : 0;
  for_parts(sums, [=](const Column& sum, Index j) FASTWEIGHTS_INLINE_LAMBDA {
    Column entries = Column::load(before + j * step);
    entries.add(sum);
    entries.store(c.data + j * c.stride);
  });
}

/// A product of fewer rows.
template <class S, int R, int N>
void multiply_part_of_tile(const LeftFactor<S>& a, const RightFactor<S>& b, Index depth,
                           const Target<S>& c, Index rows) {
  constexpr Index height = R * lanes<S>;
  S tile[height * N];
  multiply_tile<S, R, N>(a, b, depth, {tile, height, false});
  for (Index j = 0; j < N; ++j)
    for (Index i = 0; i < rows; ++i) {
      S& entry = c.data[i + j * c.stride];
      entry = (c.adds ? entry : S(0)) + tile[i + j * height];
    }
}

#if defined __GNUC__ && !defined __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"  // of the packet in PacketBlock
#endif

/// Copies square blocks of A for a panel of `height` rows, transposed, if they are whole. Gives the
/// number of its columns that are copied.
template <class S>
Index pack_transposed_blocks(const Factor<S>& a, Index rows, Index depth, S* to, Index height) {
  constexpr Index size = lanes<S>;
  if constexpr (size > 1) {
    if (rows != height) return 0;
    for (Index k = 0; k + size <= depth; k += size)
      for (Index i = 0; i < rows; i += size) {
        Eigen::internal::PacketBlock<Packet<S>, size> block;
        for (Index j = 0; j < size; ++j)
          block.packet[j] = Eigen::internal::ploadu<Packet<S>>(a.data + (i + j) * a.row + k);
        Eigen::internal::ptranspose(block);
        for (Index j = 0; j < size; ++j)
          Eigen::internal::pstoreu(to + (k + j) * height + i, block.packet[j]);
      }
    return depth / size * size;
  } else {
    return 0;
  }
}

#if defined __GNUC__ && !defined __clang__
#pragma GCC diagnostic pop
#endif

/// Copies some rows of A, at most R packets, column by column. The panel's other rows become 0.
template <class S, int R> void pack_panel(const Factor<S>& a, Index rows, Index depth, S* to) {
  using Column = Rows<S, R>;
  constexpr Index height = Column::size;
  Index k = a.column == 1 ? pack_transposed_blocks(a, rows, depth, to, height) : 0;
  for (; k < depth; ++k) {
    S* const column = to + k * height;
    const S* const from = a.data + k * a.column;
    if (a.row == 1 && rows == height) {
      Column::load(from).store(column);
    } else {
      for (Index i = 0; i < rows; ++i) column[i] = from[i * a.row];
      std::fill(column + rows, column + height, S(0));
    }
  }
}

/// The product of one panel of A with B.
template <class S, int R>
void multiply_panel(const Factor<S>& a, const Factor<S>& b, Index rows, Index depth, Index cols,
                    const Target<S>& c) {
  constexpr Index height = R * lanes<S>;
  alignas(64) S panel[height * Tile::depth];
  LeftFactor<S> left{a.data, a.column};
  if (a.row != 1 || rows != height || cols > Tile::few) {
    pack_panel<S, R>(a, rows, depth, panel);
    left = {panel, height};
  }
  const auto tiles = [&]<int N>(std::integral_constant<int, N>, Index j) {
    for (; j + N <= cols; j += N) {
      const RightFactor<S> right{b.data + j * b.column, b.row, b.column};
      if (rows == height)
        multiply_tile<S, R, N>(left, right, depth, c.from(0, j));
      else
        multiply_part_of_tile<S, R, N>(left, right, depth, c.from(0, j), rows);
    }
    return j;
  };
  Index j = tiles(std::integral_constant<int, Tile::columns<R>>(), 0);
  j = tiles(std::integral_constant<int, 4>(), j);
  j = tiles(std::integral_constant<int, 2>(), j);
  tiles(std::integral_constant<int, 1>(), j);
}

/// One column of C, for an A with contiguous columns and at least as many rows as a packet of N
/// entries has. The last packet may overlap the one before.
template <class S, Index N>
EIGEN_DONT_INLINE void multiply_small_column(const Factor<S>& a, const Factor<S>& b, Index rows,
                                             Index depth, const Target<S>& c) {
  Index i = 0;
  const auto multiply = [&]<int R>(std::integral_constant<int, R>, Index first) {
    using Column = Rows<S, R, N>;
    Column sum = Column::all(S(0));
    for (Index k = 0; k < depth; ++k)
      sum.add(Column::load(a.data + first + k * a.column), b.data[k * b.row]);
    put_column(sum, c.data + first, c.adds, i - first, Column::size);
    i = first + Column::size;
  };
  while (i + 8 * N <= rows) multiply(std::integral_constant<int, 8>(), i);
  while (i + 4 * N <= rows) multiply(std::integral_constant<int, 4>(), i);
  while (i + 2 * N <= rows) multiply(std::integral_constant<int, 2>(), i);
  while (i < rows) multiply(std::integral_constant<int, 1>(), std::min(i, rows - N));
}

/// A product with a large A, which is read in the order of its memory, some columns at a time. The
/// sums of many rows are in the first-level cache.
template <class S>
EIGEN_DONT_INLINE void multiply_large_column(const Factor<S>& a, const Factor<S>& b, Index rows,
                                             Index depth, const Target<S>& c) {
  using Column = Rows<S, 1>;
  constexpr Index most = 512, at_once = 4;
  alignas(64) S sums[most];
  const Index whole = rows / Column::size * Column::size;
  for (Index first = 0; first < whole; first += most) {
    const Index count = std::min(most, whole - first);
    std::fill_n(sums, count, S(0));
    const auto add = [&](Index k, auto columns) {
      for (Index i = 0; i < count; i += Column::size) {
        Column sum = Column::load(sums + i);
        for (Index j = k; j < k + columns; ++j)
          sum.add(Column::load(a.data + first + i + j * a.column), b.data[j * b.row]);
        sum.store(sums + i);
      }
    };
    Index k = 0;
    for (; k + at_once <= depth; k += at_once) add(k, std::integral_constant<Index, at_once>());
    for (; k < depth; ++k) add(k, std::integral_constant<Index, 1>());
    for (Index i = 0; i < count; i += Column::size)
      put_column(Column::load(sums + i), c.data + first + i, c.adds, 0, Column::size);
  }
  if (whole < rows) {
    Column sum = Column::all(S(0));
    const Index first = rows - Column::size;
    for (Index k = 0; k < depth; ++k)
      sum.add(Column::load(a.data + first + k * a.column), b.data[k * b.row]);
    put_column(sum, c.data + first, c.adds, whole - first, Column::size);
  }
}

/// One column of C, for an A with contiguous columns. Gives false, and does nothing, for few rows.
template <class S, Index N = lanes<S>>
bool multiply_column(const Factor<S>& a, const Factor<S>& b, Index rows, Index depth,
                     const Target<S>& c) {
  constexpr Index first_level_cache = 1 << 15;
  if constexpr (N >= 4 && size_within<S, N> == N) {
    if (rows < N) return multiply_column<S, N / 2>(a, b, rows, depth, c);
    if (rows >= lanes<S> && rows * depth * Index(sizeof(S)) > first_level_cache)
      multiply_large_column(a, b, rows, depth, c);
    else
      multiply_small_column<S, N>(a, b, rows, depth, c);
    return true;
  } else {
    return false;
  }
}

/// C += A B or C = A B.
template <class S>
void multiply(const Factor<S>& a, const Factor<S>& b, Index rows, Index depth, Index cols,
              Target<S> c) {
  for (Index k = 0; k < depth; k += Tile::depth, c.adds = true) {
    const Index inner = std::min(Tile::depth, depth - k);
    if (a.row == 1 && cols == 1 && multiply_column(a.from(0, k), b.from(k, 0), rows, inner, c))
      continue;
    Index i = 0;
    const auto panels = [&]<int R>(std::integral_constant<int, R>, Index least) {
      for (; rows - i >= least; i += R * lanes<S>)
        multiply_panel<S, R>(a.from(i, k), b.from(k, 0), std::min(R * lanes<S>, rows - i), inner,
                             cols, c.from(i, 0));
    };
    // A panel of more packets may have fewer rows, as long as no packet is empty. Without a copy,
    // a tall panel would be read from memory for every few columns of C.
    if constexpr (Tile::packets == 4)
      if (cols > Tile::few) panels(std::integral_constant<int, 4>(), 2 * lanes<S> + 1);
    panels(std::integral_constant<int, 2>(), lanes<S> + 1);
    panels(std::integral_constant<int, 1>(), 1);
  }
}

}  // namespace fw::detail
