#pragma once

#include <algorithm>
#include <fastweights/core/products.hpp>
#include <fastweights/kernels/simd/packet.hpp>

namespace fw::detail {
inline namespace FASTWEIGHTS_KERNELS {

/// Rows first … first + rows − 1 of a matrix, without gaps. Its passes ask ahead for as large a
/// part of what belongs to the columns.
template <class S> struct Panel {
  S* data;
  Index first, rows;
  Index first_column, columns;
};

/// How many packets the tallest panels have. `has_delta_term`: the rule looks up what a key
/// retrieves, and four leave room for its sums and updates in 32 registers, so that less is loaded
/// and counted for a multiply-add. Others have two.
constexpr int tall_panel(bool has_delta_term) {
  return has_delta_term && EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS >= 32 ? 4 : 2;
}

/// A matrix cut into panels of some rows, each contiguous and padded with zeros to whole packets,
/// so that it stays in the first-level cache while tokens go through it. The room is the thread's;
/// `Use` tells apart matrices that are needed at the same time. A panel is of `tallest` packets, of
/// two where all are to be `low`, and of fewer where the rows end.
template <class S, class Use, int tallest> class Panels {
 public:
  using Panel = detail::Panel<S>;

  Panels(Index rows, Index columns, bool low = false)
      : rows_(rows),
        columns_(columns),
        low_(low),
        buffer_(thread_buffer<S, Panels>((rows + tall - 1) / tall * tall * columns)) {}

  /// From and to a matrix with columns `stride` apart, times a factor on the way out.
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
  /// The transpose of such a matrix.
  void copy_in_transposed(const S* W, Index stride) {
    each([&](auto packets, const Panel& p) {
      constexpr Index size = packets * lanes<S>;
      std::fill(p.data, p.data + size * columns_, S(0));
      for (Index i = 0; i < p.rows; ++i)
        for (Index j = 0; j < columns_; ++j) p.data[i + j * size] = W[j + (p.first + i) * stride];
    });
  }

  /// f(packets a column, as a constant, and the panel) for all of them.
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

  // As many rows as f has been given, padding included.
  template <int R, class F> Index visit(const F& f, Index first) const {
    f(std::integral_constant<int, R>{}, panel(first, R * lanes<S>));
    return R * lanes<S>;
  }

  Panel panel(Index first, Index most) const {
    const Index rows = std::min(most, rows_ - first);
    const Index column = first * columns_ / rows_, end = (first + rows) * columns_ / rows_;
    return {buffer_ + first * columns_, first, rows, column, end - column};
  }

  Index rows_, columns_;
  bool low_;
  S* buffer_;
};

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
