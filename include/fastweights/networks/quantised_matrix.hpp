#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <fastweights/core/views.hpp>
#include <fastweights/kernels/simd/stored.hpp>
#include <fastweights/math/parallel_for.hpp>
#include <fastweights/math/products.hpp>
#include <variant>
#include <vector>

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// The form of the entries of a quantised matrix: as they are, as bfloat16, or as 8-bit integers
/// with one scale per row (the largest entry of a row is ±127).
enum class WeightType {
  same,      ///< as they are
  bfloat16,  ///< rounded to 8 significant bits
  int8       ///< −127 to 127, times a scale per row
};

/// A matrix for products with few columns, whose time is that of reading the matrix. Rows are kept
/// in panels, column by column, so a product reads memory in order and sums in registers. The
/// arithmetic is that of S. With OpenMP, Eigen::nbThreads() threads share the panels.
template <class S> class QuantisedMatrix {
  using X = SequenceView<const S, Dynamic>;
  using Y = SequenceView<S, Dynamic>;

 public:
  /// The entries of a matrix or map with columns or rows in memory. Throws std::invalid_argument
  /// for complex numbers, which train a network and never serve.
  template <class M>
  QuantisedMatrix(const M& m, WeightType type) : rows_(m.rows()), cols_(m.cols()) {
    if constexpr (Eigen::NumTraits<S>::IsComplex) {
      fw::detail::throw_invalid({"QuantisedMatrix: complex numbers, expected real ones"});
    } else {
      if (type == WeightType::same) fill<S>(m);
      if (type == WeightType::bfloat16) fill<Eigen::bfloat16>(m);
      if (type == WeightType::int8) fill<std::int8_t>(m);
    }
  }

  /// The number of rows.
  Index rows() const { return rows_; }
  /// The number of columns.
  Index cols() const { return cols_; }
  /// The size in memory.
  Index bytes() const {
    return std::visit([](const auto& e) { return Index(e.size() * sizeof(e[0])); }, entries_) +
           Index(scales_.size()) * Index(sizeof(S));
  }

  /// y = M x. Does not allocate for up to 8 columns.
  void multiply(const X& x, Y y) const { multiply_rows(0, x, y); }

  /// y = M x for some of M's rows: `first` and the next y.rows() − 1.
  void multiply_rows(Index first, const X& x, Y y) const;

  /// to = row i
  template <class To> void copy_row(Index i, To&& to) const {
    std::visit(
        [&]<class T>(const std::vector<T>& entries) {
          const T* from = entries.data() + i / height * height * cols_ + i % height;
          for (Index j = 0; j < cols_; ++j)
            to[j] = fw::detail::converted<S>(from[j * height]) * scale(i);
        },
        entries_);
  }

 private:
  using Column = fw::detail::Rows<S, 4>;
  static constexpr Index height = Column::size;
  static constexpr Index most_columns = 8;  // of a product that needs no scratch

  S scale(Index row) const { return scales_.empty() ? S(1) : scales_[std::size_t(row)]; }

  template <class T> static T stored(S x, [[maybe_unused]] S scale) {
    if constexpr (std::is_same_v<T, std::int8_t>)
      return static_cast<T>(std::lround(double(x / scale)));
    else
      return static_cast<T>(x);
  }

  template <class T, class M> void fill(const M& m) {
    const Index panels = (rows_ + height - 1) / height;
    std::vector<T> entries(std::size_t(panels * height * cols_), T(0));
    if constexpr (std::is_same_v<T, std::int8_t>)
      for (Index i = 0; i < rows_; ++i) {
        const S largest = m.row(i).cwiseAbs().maxCoeff();
        scales_.push_back(largest > S(0) ? largest / S(127) : S(1));
      }
    T* to = entries.data();
    for (Index row = 0; row < rows_; row += height, to += height * cols_) {
      const Index count = std::min(height, rows_ - row);
      for (Index j = 0; j < cols_; ++j)
        for (Index i = 0; i < count; ++i)
          to[j * height + i] = stored<T>(m(row + i, j), scale(row + i));
    }
    entries_ = std::move(entries);
  }

  // Some rows of a panel: entry i of a column is row `row + i` of M and `row + i − shift` of y.
  template <class T> struct Panel {
    const T* entries;
    Index row, shift, begin, end;  // of the rows, begin ≤ i < end take part

    static Panel of(const std::vector<T>& all, Index p, Index cols, Index first, Index rows) {
      const Index row = p * height;
      return {all.data() + row * cols, row, first, std::max<Index>(0, first - row),
              std::min(height, first + rows - row)};
    }
  };

  template <class T> void multiply_panel(const Panel<T>& panel, const X& x, Y& y) const {
    Index t = 0;
    if (x.cols() <= most_columns) {
      for (; t + 4 <= x.cols(); t += 4) multiply_columns<4>(panel, x, y, t);
      for (; t + 2 <= x.cols(); t += 2) multiply_columns<2>(panel, x, y, t);
      for (; t < x.cols(); ++t) multiply_columns<1>(panel, x, y, t);
    } else {
      multiply_converted(panel, x, y);
    }
  }

  // Fetches what comes 4 KiB later, which the processor does not, perhaps beyond the end.
  template <class T> static EIGEN_ALWAYS_INLINE void prefetch([[maybe_unused]] const T* address) {
#if defined __GNUC__
    __builtin_prefetch(reinterpret_cast<const char*>(address) + 4096);
#endif
  }

  template <int columns, class T>
  void multiply_columns(const Panel<T>& panel, const X& x, Y& y, Index t) const {
    Column sums[columns];
    for (Column& sum : sums) sum = Column::all(S(0));
    for (Index j = 0; j < cols_; ++j) {
      prefetch(panel.entries + j * height);
      const Column column = fw::detail::Stored<Column>::load(panel.entries + j * height);
      for (int c = 0; c < columns; ++c) sums[c].add(column, x(j, t + c));
    }
    S out[height];
    for (int c = 0; c < columns; ++c) {
      sums[c].store(out);
      for (Index i = panel.begin; i < panel.end; ++i)
        y(panel.row + i - panel.shift, t + c) = out[i] * scale(panel.row + i);
    }
  }

  // Many columns: the panel as a matrix of S.
  template <class T> void multiply_converted(const Panel<T>& panel, const X& x, Y& y) const {
    const Index count = panel.end - panel.begin, row = panel.row + panel.begin;
    S* buffer = fw::detail::thread_buffer<S, QuantisedMatrix>(height * cols_);
    for (Index j = 0; j < cols_; ++j)
      for (Index i = 0; i < height; ++i)
        buffer[j * height + i] = fw::detail::converted<S>(panel.entries[j * height + i]);
    using Matrix = Eigen::Matrix<S, Dynamic, Dynamic>;
    const auto converted = Eigen::Map<const Matrix, 0, Eigen::OuterStride<>>(
        buffer + panel.begin, count, cols_, Eigen::OuterStride<>(height));
    auto rows = y.middleRows(row - panel.shift, count);
    fw::detail::set_product(rows, converted, x, fw::detail::one_block);
    if (!scales_.empty())
      for (Index i = 0; i < count; ++i) rows.row(i) *= scale(row + i);
  }

  Index rows_, cols_;
  std::variant<std::vector<S>, std::vector<Eigen::bfloat16>, std::vector<std::int8_t>> entries_;
  std::vector<S> scales_;  // of rows, for int8
};

// Not inline, so that fastweights::compiled has it once.
template <class S> void QuantisedMatrix<S>::multiply_rows(Index first, const X& x, Y y) const {
  std::visit(
      [&]<class T>(const std::vector<T>& entries) {
        const Index begin = first / height, end = (first + y.rows() + height - 1) / height;
        const Index panels = end - begin;
        const Index threads = std::min<Index>(
            x.cols() * y.rows() * cols_ < 1 << 16 ? 1 : Index(Eigen::nbThreads()), panels);
        parallel_for(threads, threads > 1, [&](Index i) {
          for (Index p = begin + panels * i / threads; p < begin + panels * (i + 1) / threads; ++p)
            multiply_panel(Panel<T>::of(entries, p, cols_, first, y.rows()), x, y);
        });
      },
      entries_);
}

}  // namespace fw::networks

namespace fw::inline FASTWEIGHTS_ABI {

/// The type of weights in 16 bits, for options: `{.weights = fw::bfloat16}`.
inline constexpr networks::WeightType bfloat16 = networks::WeightType::bfloat16;
/// The type of weights in 8 bits: `{.weights = fw::int8}`.
inline constexpr networks::WeightType int8 = networks::WeightType::int8;

}  // namespace fw
