#pragma once

#include <algorithm>
#include <fastweights/core/products.hpp>
#include <fastweights/kernels/simd/packet.hpp>

namespace fw::detail {
inline namespace FASTWEIGHTS_KERNELS {

/// Rows first … first + rows − 1 of a matrix, contiguous. Its passes prefetch the entries from
/// `first_column` on, `columns` in number, of vectors with one entry per column.
template <class S> struct Panel {
  S* data;
  Index first, rows;
  Index first_column, columns;
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
/// packets, or two if `low` is true; the last panels may have fewer.
template <class S, class Use, int tallest> class Panels {
 public:
  using Panel = detail::Panel<S>;

  Panels(Index rows, Index columns, bool low = false)
      : rows_(rows),
        columns_(columns),
        low_(low),
        buffer_(thread_buffer<S, Panels>((rows + tall - 1) / tall * tall * columns)) {}

  /// Copies from and to a matrix with column stride `stride`; copy_out multiplies by a factor.
  void copy_in(const S* W, Index stride) {
    each([&](auto packets, const Panel& p) {
      constexpr Index size = packets * lanes<S>;
      for (Index j = 0; j < columns_; ++j) {
        S* const to = p.data + j * size;
        std::copy_n(W + p.first + j * stride, p.rows, to);
        std::fill(to + p.rows, to + size, S(0));
      }
    });
  }
  void copy_out(S* W, Index stride, S factor = S(1)) const {
    each([&](auto packets, const Panel& p) {
      constexpr Index size = packets * lanes<S>;
      for (Index j = 0; j < columns_; ++j)
        for (Index i = 0; i < p.rows; ++i)
          W[p.first + i + j * stride] = factor * p.data[i + j * size];
    });
  }
  /// Copies the transpose of such a matrix.
  void copy_in_transposed(const S* W, Index stride) {
    each([&](auto packets, const Panel& p) {
      constexpr Index size = packets * lanes<S>;
      std::fill(p.data, p.data + size * columns_, S(0));
      for (Index i = 0; i < p.rows; ++i)
        for (Index j = 0; j < columns_; ++j) p.data[i + j * size] = W[j + (p.first + i) * stride];
    });
  }

  /// Calls f(packets per column as a constant, panel) for all panels.
  template <class F> void each(const F& f) const {
    for (Index first = 0; first < rows_;) {
      const Index left = rows_ - first;
      if (left <= lanes<S>)
        first += visit<1>(f, first);
      else if (low_ || left <= 3 * lanes<S>)
        first += visit<2>(f, first);
      else
        first += visit<tallest>(f, first);
    }
  }
  Index columns() const { return columns_; }

 private:
  static constexpr Index tall = tallest * lanes<S>;

  // Returns the number of rows of the panel, including padding.
  template <int R, class F> Index visit(const F& f, Index first) const {
    f(std::integral_constant<int, R>{}, panel(first, R * lanes<S>));
    return R * lanes<S>;
  }

  Panel panel(Index first, Index max_rows) const {
    const Index rows = std::min(max_rows, rows_ - first);
    const Index column = first * columns_ / rows_, end = (first + rows) * columns_ / rows_;
    return {buffer_ + first * columns_, first, rows, column, end - column};
  }

  Index rows_, columns_;
  bool low_;
  S* buffer_;
};

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
