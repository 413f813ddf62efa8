#pragma once

#include <algorithm>
#include <cstdint>
#include <fastweights/core/scratch.hpp>
#include <fastweights/kernels/scan/matrix_pass.hpp>
#include <fastweights/kernels/simd/register_products.hpp>

/// \file
/// The vectors of a chunk of tokens, in two layouts: one after another (ChunkRows), and transposed,
/// with the same entry of all vectors in SIMD lanes.

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// The most corrections of a chunk. Work within a chunk grows with it: 16 are slower for d = 64.
inline constexpr Index chunk_size = 8;

/// Some numbers for all corrections of a chunk. Entry (t, s) of a square is at t + chunk_size s.
template <class S> struct ChunkSquare {
  S data[chunk_size * chunk_size];
  S* column(Index s) { return data + chunk_size * s; }
  const S* column(Index s) const { return data + chunk_size * s; }
};

/// Up to `chunk_size` vectors `stride` apart. Whole pairs of packets can be loaded from them. So
/// can those of a panel: a panel of four packets has at least three and a part of rows.
template <class S> struct ChunkView {
  const S* data = nullptr;
  Index stride = 0, entries = 0;
  EIGEN_ALWAYS_INLINE const S* operator[](Index t) const { return data + t * stride; }
};

/// Up to `chunk_size` vectors, padded with zeros to whole packets.
template <class S> class ChunkRows {
 public:
  /// The entries of such vectors in memory. The stride is no power of 2, so that they do not share
  /// cache sets.
  static Index padded(Index entries) { return (entries + lanes<S> - 1) / lanes<S> * lanes<S>; }
  static Index stride_of(Index entries) { return padded(entries) + lanes<S>; }
  static Index size_of(Index entries) { return chunk_size * stride_of(entries); }

  ChunkRows() = default;
  ChunkRows(S* data, Index entries)
      : data_(data), entries_(entries), padded_(padded(entries)), stride_(stride_of(entries)) {
    std::fill_n(data, size_of(entries), S(0));
  }
  EIGEN_ALWAYS_INLINE S* operator[](Index t) const { return data_ + t * stride_; }
  Index entries() const { return entries_; }
  operator ChunkView<S>() const { return {data_, stride_, entries_}; }

  /// A view of the vectors x(t), t < count, of which a chunk has at most `most`: of themselves, if
  /// there are chunk_size of them and they are as a view needs them, and else of copies here.
  template <Index most, class F> ChunkView<S> view(Index count, const F& x) const {
    if constexpr (most == chunk_size)
      if (count == most && entries_ % (2 * lanes<S>) == 0) {
        const Index stride = distance(x(0), x(1));
        bool regular = stride > 0 && stride <= 2 * entries_;  // larger ones may share cache sets
        for (Index t = 2; t < most; ++t) regular = regular && distance(x(t - 1), x(t)) == stride;
        if (regular) return {x(0), stride, entries_};
      }
    for (Index t = 0; t < count; ++t) set(t, x(t));
    return *this;
  }

  /// x_t = y
  EIGEN_ALWAYS_INLINE void set(Index t, const S* y) const {
    combine(
        t, y, y, [](Part&, const Part&) {}, [](S x, S) { return x; });
  }
  /// x_t = factor y
  EIGEN_ALWAYS_INLINE void set(Index t, const S* y, S factor) const {
    combine(
        t, y, y, [=](Part& x, const Part&) { x.scale(factor); },
        [=](S x, S) { return factor * x; });
  }
  /// x_t = factor y ∘ z
  EIGEN_ALWAYS_INLINE void set_product(Index t, const S* y, const S* z, S factor = S(1)) const {
    combine(
        t, y, z,
        [=](Part& x, const Part& by) {
          x.scale(by);
          x.scale(factor);
        },
        [=](S x, S by) { return factor * (x * by); });
  }
  void clear(Index t) const { std::fill_n((*this)[t], padded_, S(0)); }
  /// x_t ← y ∘ x_t for t < count. `y` has an entry for the padding as well.
  void scale_all(Index count, const S* y) const {
    for_each([&](Index i) {
      const Part factors = Part::load(y + i);
      for (Index t = 0; t < count; ++t) change(t, i, [&](Part& x) { x.scale(factors); });
    });
  }
  /// x_t += Σ_s weights[t + chunk_size s] y_s for all t and s < count. The weights of t are 0 for
  /// s < first(t), which does not fall with t.
  template <class F>
  void add_products(const S* weights, const ChunkView<S>& y, Index count, const F& first) const {
    using Column = Rows<S, 2>;  // the stride has room for the second packet
    for (Index i = 0; i < padded_; i += Column::size)
      for (Index t = 0; t < chunk_size; t += 4) {
        RegisterTuple<Column, 4> sums;
        load(sums, (*this)[t] + i, stride_);
        const Index s = first(t);
        add_product(sums, LeftFactor<S>{y[s] + i, y.stride},
                    RightFactor<S>{weights + t + chunk_size * s, chunk_size, 1}, count - s);
        store(sums, (*this)[t] + i, stride_);
      }
  }

 private:
  using Part = Rows<S, 1>;

  // 0 if the vectors are not a number of entries apart.
  static Index distance(const S* x, const S* y) {
    const auto bytes = reinterpret_cast<std::intptr_t>(y) - reinterpret_cast<std::intptr_t>(x);
    constexpr auto size = static_cast<std::intptr_t>(sizeof(S));
    return bytes % size == 0 ? static_cast<Index>(bytes / size) : 0;
  }

  template <class F> EIGEN_ALWAYS_INLINE void for_each(const F& f) const {
    for (Index i = 0; i < padded_; i += Part::size) f(i);
  }
  template <class F> EIGEN_ALWAYS_INLINE void change(Index t, Index i, const F& f) const {
    Part x = Part::load((*this)[t] + i);
    f(x);
    x.store((*this)[t] + i);
  }
  // x_t = f(y, z), with only the entries of y and z read.
  template <class F, class G>
  EIGEN_ALWAYS_INLINE void combine(Index t, const S* y, const S* z, const F& f, const G& g) const {
    S* const x = (*this)[t];
    const Index whole = entries_ / Part::size * Part::size;
    for (Index i = 0; i < whole; i += Part::size) {
      Part part = Part::load(y + i);
      f(part, Part::load(z + i));
      part.store(x + i);
    }
    for (Index i = whole; i < entries_; ++i) x[i] = g(y[i], z[i]);
  }

  S* data_ = nullptr;
  Index entries_ = 0, padded_ = 0, stride_ = 0;
};

/// A number for every vector of a chunk, in SIMD lanes.
template <class S>
using InLanes = Rows<S, static_cast<int>(chunk_size / std::min(chunk_size, lanes<S>)),
                     std::min(chunk_size, lanes<S>)>;

/// to_t = factors_t x_t for n entries of x in lanes
template <class S> void scale_lanes(const S* x, const S* factors, Index n, S* to) {
  const auto by = InLanes<S>::load(factors);
  for (Index i = 0; i < n; ++i) {
    auto part = InLanes<S>::load(x + chunk_size * i);
    part.scale(by);
    part.store(to + chunk_size * i);
  }
}

/// Entry i of all vectors times factors[i], for n entries of x in lanes.
template <class S> void scale_each_lane(S* x, const S* factors, Index n) {
  for (Index i = 0; i < n; ++i) {
    auto part = InLanes<S>::load(x + chunk_size * i);
    part.scale(factors[i]);
    part.store(x + chunk_size * i);
  }
}

/// A square block of numbers, transposed.
template <class S> class TransposedBlock {
 public:
  static constexpr Index size = std::min(chunk_size, lanes<S>);
  using Part = Rows<S, 1, size>;

  /// From the rows row(0) … row(size − 1).
  template <class F> EIGEN_ALWAYS_INLINE explicit TransposedBlock(const F& row) {
    for (Index i = 0; i < size; ++i) rows_.packet[i] = row(i).packet;
    if constexpr (size > 1) Eigen::internal::ptranspose(rows_);
  }
  EIGEN_ALWAYS_INLINE Part row(Index i) const { return {rows_.packet[i]}; }

 private:
  Eigen::internal::PacketBlock<PacketWithin<S, size>, static_cast<int>(size)> rows_;
};

/// Up to `chunk_size` vectors anywhere. Those beyond the last are 0.
template <class S> struct ChunkPointers {
  const S* vectors[chunk_size];
  Index entries;

  /// From x(t) for t < count; `zeros` has as many entries.
  template <class F> ChunkPointers(Index count, const S* zeros, Index n, const F& x) : entries(n) {
    for (Index t = 0; t < chunk_size; ++t) vectors[t] = t < count ? x(t) : zeros;
  }
  ChunkPointers(const ChunkView<S>& x) : entries(x.entries) {
    for (Index t = 0; t < chunk_size; ++t) vectors[t] = x[t];
  }
  ChunkPointers(const ChunkRows<S>& x) : ChunkPointers(ChunkView<S>(x)) {}
};

/// to[t + chunk_size i] = factors_t x_t[i], or x_t[i] if there are no factors.
template <class S>
void transpose_to_lanes(const ChunkPointers<S>& x, S* to, const S* factors = nullptr) {
  using Block = TransposedBlock<S>;
  const Index whole = x.entries / Block::size * Block::size;
  for (Index t = 0; t < chunk_size; t += Block::size)
    for (Index i = 0; i < whole; i += Block::size) {
      const Block block([&](Index r) { return Block::Part::load(x.vectors[t + r] + i); });
      for (Index r = 0; r < Block::size; ++r) block.row(r).store(to + t + chunk_size * (i + r));
    }
  for (Index i = whole; i < x.entries; ++i)
    for (Index t = 0; t < chunk_size; ++t) to[t + chunk_size * i] = x.vectors[t][i];
  if (factors != nullptr) scale_lanes(to, factors, x.entries, to);
}
/// x_t[i] = from[t + chunk_size i]
template <class S> void transpose_from_lanes(const S* from, const ChunkRows<S>& x) {
  using Block = TransposedBlock<S>;
  for (Index i = 0; i < x.entries(); i += Block::size)
    for (Index t = 0; t < chunk_size; t += Block::size) {
      const Block block(
          [&](Index r) { return Block::Part::load(from + t + chunk_size * (i + r)); });
      for (Index r = 0; r < Block::size; ++r) block.row(r).store(x[t + r] + i);
    }
}
/// to[t + chunk_size s] = x_t·y_s, for x in lanes and at least s < count.
template <class S>
void set_lane_products(const S* x, const ChunkView<S>& y, Index count, ChunkSquare<S>& to) {
  const auto set = [&](Index s, auto N) FASTWEIGHTS_INLINE_LAMBDA {
    RegisterTuple<InLanes<S>, N()> sums;
    set_zero<S>(sums);
    add_product(sums, LeftFactor<S>{x, chunk_size}, RightFactor<S>{y[s], 1, y.stride}, y.entries);
    store(sums, to.column(s), chunk_size);
  };
  if (count > chunk_size / 2)
    set(0, std::integral_constant<int, chunk_size>());
  else
    set(0, std::integral_constant<int, chunk_size / 2>());
}
}  // namespace fw::detail
