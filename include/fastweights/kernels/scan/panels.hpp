#pragma once

#include <algorithm>
#include <fastweights/kernels/simd/packet.hpp>
#include <fastweights/math/products.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// Rows first … first + rows − 1 of a matrix, contiguous. Each panel also prefetches its share of
/// the vectors with one entry per column: `prefetch_count` entries from `prefetch_first` on.
template <class S> struct Panel {
  S* data;
  int packets;  // per column, with padding
  Index first, rows;
  Index prefetch_first, prefetch_count;
};

/// The number of packets of the tallest panels. With a delta term and 32 registers there are four,
/// which leave enough registers for sums and updates and need fewer instructions per multiply-add.
/// Otherwise there are two.
constexpr int tall_panel(bool has_delta_term) {
  return has_delta_term && EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS >= 32 ? 4 : 2;
}

/// A matrix split into panels of rows. Each panel is contiguous, padded with zeros to whole
/// packets, and fits in the first-level cache while it processes tokens. The buffer belongs to the
/// thread; matrices in use at the same time need different `Use` types. Panels have `tallest`
/// packets, or two if `low` is true; the last panels may have fewer. With `matrices` = 2, a second
/// matrix of the same size follows in every panel.
template <class S, class Use, int tallest, int matrices = 1> class Panels {
 public:
  using Panel = detail::Panel<S>;

  Panels(Index rows, Index columns, bool low = false)
      : rows_(rows),
        columns_(columns),
        low_(low),
        buffer_(thread_buffer<S, Panels>((rows + tall - 1) / tall * tall * columns * matrices)) {}

  /// Copies from and to a matrix with column stride `stride`, times a factor. `which` is the number
  /// of the matrix. `divisors` are those of the stored columns, or null.
  void copy_in(const S* W, Index stride, S factor = S(1), Index which = 0,
               const S* divisors = nullptr) {
    for (const Panel& p : *this)
      for (Index j = 0; j < columns_; ++j) {
        const S by = divisors == nullptr ? factor : factor / divisors[j];
        S* const to = p.data + (which * columns_ + j) * size_of(p);
        const S* const from = W + p.first + j * stride;
        std::transform(from, from + p.rows, to, [=](S x) { return by * x; });
        std::fill(to + p.rows, to + size_of(p), S(0));
      }
  }
  void copy_out(S* W, Index stride, S factor = S(1), Index which = 0,
                const S* divisors = nullptr) const {
    for (const Panel& p : *this)
      for (Index j = 0; j < columns_; ++j) {
        const S by = divisors == nullptr ? factor : factor * divisors[j];
        for (Index i = 0; i < p.rows; ++i)
          W[p.first + i + j * stride] = by * p.data[i + (which * columns_ + j) * size_of(p)];
      }
  }
  /// Copies the transpose of such a matrix.
  void copy_in_transposed(const S* W, Index stride, S factor = S(1)) {
    for (const Panel& p : *this) {
      std::fill(p.data, p.data + size_of(p) * columns_, S(0));
      for (Index i = 0; i < p.rows; ++i)
        for (Index j = 0; j < columns_; ++j)
          p.data[i + j * size_of(p)] = factor * W[j + (p.first + i) * stride];
    }
  }

  /// The panels from the first row to the last.
  class Iterator {
   public:
    Iterator(const Panels& panels, Index first) : panels_(panels), first_(first) {}
    Panel operator*() const { return panels_.panel(first_); }
    Iterator& operator++() {
      first_ += panels_.packets(first_) * lanes<S>;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return first_ < other.first_; }

   private:
    const Panels& panels_;
    Index first_;
  };
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, rows_}; }
  Index columns() const { return columns_; }

 private:
  static constexpr Index tall = tallest * lanes<S>;

  static Index size_of(const Panel& p) { return p.packets * lanes<S>; }

  int packets(Index first) const {
    const Index left = rows_ - first;
    if (left <= lanes<S>) return 1;
    return low_ || left <= 3 * lanes<S> ? 2 : tallest;
  }

  Panel panel(Index first) const {
    const int height = packets(first);
    const Index rows = std::min(height * lanes<S>, rows_ - first);
    const Index column = first * columns_ / rows_, end = (first + rows) * columns_ / rows_;
    return {buffer_ + first * columns_ * matrices, height, first, rows, column, end - column};
  }

  Index rows_, columns_;
  bool low_;
  S* buffer_;
};

}  // namespace fw::detail
