#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <fastweights/core/errors.hpp>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

/// \file
/// Views of tokens and sequences: Eigen maps that never own and never copy. A token is one column,
/// or `width` columns for rules that take several at a time. A sequence is D×T column-major with
/// one token per column, which has the memory layout of NumPy's `[T, D]`. A view converts
/// implicitly from any Eigen matrix, map or block with contiguous columns; an expression must be
/// evaluated first. A view of a temporary is valid only until the end of the call, so give
/// longer-lived results a named matrix.
///
/// A std::span, and what converts to one (std::vector, std::array), counts as one column, or as a
/// sequence of numbers. `as_columns` makes several columns of it. No call copies the numbers:
///
///     std::span<const float> key, value, keys, values;  std::span<float> output, outputs;
///     fw::step(memory, state, {key, value, beta}, {key}, {output});
///     fw::step(memory, state, {key, value, beta}, {key}, {std::span(pointer, 64)});
///     fw::scan(memory, state, {fw::as_columns(keys, 64), fw::as_columns(values, 64), betas},
///              {fw::as_columns(keys, 64)}, {fw::as_columns(outputs, 64)});

#if !EIGEN_VERSION_AT_LEAST(3, 4, 0)
#error "fastweights needs Eigen 3.4 or newer"
#endif

namespace fw::inline FASTWEIGHTS_ABI {

using Eigen::Dynamic;
using Eigen::Index;

/// The size of a record's member: rows, and columns per step. A step of a member for chunks may
/// have any number of columns, at least one. A sequence of chunks is split every `width` columns,
/// and the last step has the remaining columns. It has no default: a record of sizes that leaves
/// out a member does not compile.
struct MemberExtent {
  Index rows;          ///< rows
  Index width;         ///< columns per step, 1 for a vector
  bool chunks;         ///< whether a step may have any number of columns
  bool grows = false;  ///< of a state: `width` is the first number of columns, any is legal

  /// From rows and columns.
  constexpr MemberExtent(Index r, Index w, bool of_chunks = false)
      : rows(r), width(w), chunks(of_chunks) {}
  /// Extent of an array in a state that gets more columns when it is full. See State of
  /// KeyValueCache.
  static constexpr MemberExtent growing(Index r, Index first) {
    MemberExtent extent(r, first);
    extent.grows = true;
    return extent;
  }
  /// Does not compile: a record of sizes lists all its members.
  template <class T = void> MemberExtent() : MemberExtent(0, 0) {
    static_assert(
        !std::is_void_v<T>,
        "fastweights: a size is missing; state_extents() and the functions of a signature "
        "give {rows, columns} for every member of their record");
  }
};

namespace detail {

template <class S, int Rows, int Cols>
using PlainArray = Eigen::Matrix<std::remove_const_t<S>, Rows, Cols,
                                 (Rows == 1 && Cols != 1) ? Eigen::RowMajor : Eigen::ColMajor>;

template <class S, int Rows, int Cols>
using ConstPlainArray = std::conditional_t<std::is_const_v<S>, const PlainArray<S, Rows, Cols>,
                                           PlainArray<S, Rows, Cols>>;

// Eigen stores a matrix of one row in row-major order, so its column stride is the inner stride.
// For all other matrices it is the outer stride.
template <int Rows, int Cols>
using ColumnStride =
    std::conditional_t<Cols == 1, Eigen::Stride<0, 0>,
                       std::conditional_t<Rows == 1, Eigen::InnerStride<>, Eigen::OuterStride<>>>;

template <class S, int Rows, int Cols>
using ColumnMap =
    Eigen::Map<ConstPlainArray<S, Rows, Cols>, Eigen::Unaligned, ColumnStride<Rows, Cols>>;

template <int Rows, int Cols>
EIGEN_ALWAYS_INLINE ColumnStride<Rows, Cols> column_stride([[maybe_unused]] Index stride) {
  if constexpr (Cols == 1)
    return {};
  else
    return ColumnStride<Rows, Cols>(stride);
}

template <class D> std::true_type is_dense(const Eigen::DenseBase<D>&);
std::false_type is_dense(...);

template <class X>
inline constexpr bool is_dense_type = decltype(is_dense(std::declval<X&>()))::value;

// A type that converts to a span of its elements, other than Eigen's vectors.
template <class X>
concept HasSpan = !is_dense_type<X> && requires(X & x) {
  std::span(x);
};

enum class ViewError { none, not_dense, other_scalar, expression, constant, temporary };

// The reason why S cannot view the numbers of a span, a container or an array.
template <class S, class X> constexpr ViewError span_error() {
  using Plain = std::remove_cvref_t<X>;
  using Element =
      typename decltype(std::span(std::declval<std::remove_reference_t<X>&>()))::element_type;
  constexpr bool writes = !std::is_const_v<S>;
  if constexpr (!std::is_same_v<std::remove_cv_t<Element>, std::remove_const_t<S>>)
    return ViewError::other_scalar;
  else if constexpr (writes && std::is_const_v<Element>)
    return ViewError::constant;
  else if constexpr (writes && !std::is_lvalue_reference_v<X> &&
                     !std::ranges::enable_borrowed_range<Plain>)
    return ViewError::temporary;
  else
    return ViewError::none;
}

// The reason why S cannot view an X.
template <class S, class X> constexpr ViewError view_error() {
  using Plain = std::remove_cvref_t<X>;
  constexpr bool writes = !std::is_const_v<S>;
  if constexpr (HasSpan<std::remove_reference_t<X>>)
    return span_error<S, X>();
  else if constexpr (!is_dense_type<Plain>)
    return ViewError::not_dense;
  else if constexpr (!std::is_same_v<typename Plain::Scalar, std::remove_const_t<S>>)
    return ViewError::other_scalar;
  else if constexpr ((Plain::Flags & Eigen::DirectAccessBit) == 0)
    return ViewError::expression;
  else if constexpr (writes && ((Plain::Flags & Eigen::LvalueBit) == 0 ||
                                std::is_const_v<std::remove_reference_t<X>>))
    return ViewError::constant;
  else if constexpr (writes && !std::is_lvalue_reference_v<X> &&
                     std::is_base_of_v<Eigen::PlainObjectBase<Plain>, Plain>)
    return ViewError::temporary;
  else
    return ViewError::none;
}

// A class, because the compiler instantiates it before the functions that would fail for X.
template <class S, class X> struct AssertViewSource {
  static constexpr ViewError error = view_error<S, X>();
  static_assert(error != ViewError::not_dense,
                "fastweights: pass an Eigen matrix, map or block here, or a std::span");
  static_assert(error != ViewError::other_scalar,
                "fastweights: the scalar type differs from the memory's; cast it first");
  static_assert(error != ViewError::expression,
                "fastweights: an expression has no storage to view; evaluate it first");
  static_assert(error != ViewError::constant, "fastweights: an output must be writable");
  static_assert(error != ViewError::temporary,
                "fastweights: an output must outlive the call; give the matrix a name");
};

// A view is made before it is known which argument it is, unless `argument` says so.
[[noreturn]] FASTWEIGHTS_COLD inline void throw_not_contiguous(
    Index rows, Index cols, Index row_stride, Index col_stride,
    std::string_view argument = "an argument") {
  const std::string size = std::to_string(rows) + " rows and " + std::to_string(cols) + " columns";
  if (rows > 1 && cols > 1 && col_stride == 1)
    throw_invalid({"fastweights: ", argument, " of ", size,
                   " is row-major, expected column-major, a token must be contiguous in memory: an "
                   "array [T, D] is Eigen::Map<const Eigen::MatrixXf>(data, D, T)"});
  throw_invalid({"fastweights: ", argument, " of ", size, " has entries that are ",
                 std::to_string(rows > 1 ? row_stride : col_stride),
                 " numbers apart, a token must be contiguous in memory"});
}

[[noreturn]] FASTWEIGHTS_COLD inline void throw_not_columns(Index size, Index rows) {
  throw_invalid({"fastweights: as_columns: ", std::to_string(size), " numbers are no columns of ",
                 std::to_string(rows), " rows"});
}

// The distance between the columns of x, whose columns must be contiguous.
template <class X> Index contiguous_column_stride(const X& x) {
  const bool contiguous = x.rows() <= 1 || x.cols() == 0 || x.rowStride() == 1;
  if (!contiguous) throw_not_contiguous(x.rows(), x.cols(), x.rowStride(), x.colStride());
  return x.colStride();
}

}  // namespace detail

/// The numbers of a span as a matrix of `rows` rows, one column after the other: a sequence of
/// tokens, or the interleaved frames of an audio buffer. Throws std::invalid_argument unless the
/// columns are whole.
template <class S, std::size_t N>
auto as_columns(std::span<S, N> numbers, Index rows)
    -> Eigen::Map<detail::ConstPlainArray<S, Dynamic, Dynamic>> {
  const auto size = static_cast<Index>(numbers.size());
  if (rows < 1 || size % rows != 0) detail::throw_not_columns(size, rows);
  return {numbers.data(), rows, size / rows};
}

/// Columns of a container or an array, which must outlive the result.
template <detail::HasSpan X> auto as_columns(X& numbers, Index rows) {
  return as_columns(std::span(numbers), rows);
}
/// A temporary container would leave its columns dangling.
template <detail::HasSpan X>
void as_columns(const X&& numbers,
                Index rows) requires(!std::ranges::enable_borrowed_range<X>) = delete;

/// One step of a member: `Rows` × `Width`, usually a vector. An Eigen map; S is const for inputs.
template <class S, int Rows, int Width = 1>
class TokenView : public detail::ColumnMap<S, Rows, Width> {
 public:
  using Base = detail::ColumnMap<S, Rows, Width>;
  using Base::operator=;
  /// Another view of the same numbers.
  TokenView(const TokenView&) = default;
  TokenView& operator=(const TokenView& other) = default;  // copies the entries, as Eigen::Map does

  /// Views numbers at `data`; columns are `stride` numbers apart.
  EIGEN_ALWAYS_INLINE TokenView(S* data, Index rows, Index width, Index stride)
      : Base(data, Rows == Dynamic ? rows : Rows, Width == Dynamic ? width : Width,
             detail::column_stride<Rows, Width>(stride)),
        given_{rows, width} {}

  /// Views the storage of x. Throws std::invalid_argument when its entries are not contiguous.
  template <class X>
  requires(!std::is_base_of_v<TokenView, std::remove_cvref_t<X>>) EIGEN_ALWAYS_INLINE
      TokenView(X&& x)  // NOLINT: implicit by design
      : TokenView(from<X>(x)) {
    detail::AssertViewSource<S, X>();
  }

  /// The size of the matrix that was passed, which the checks compare with the expected size.
  const MemberExtent& given() const { return given_; }

 private:
  template <class X> static EIGEN_ALWAYS_INLINE TokenView from(std::remove_reference_t<X>& x) {
    if constexpr (detail::view_error<S, X>() != detail::ViewError::none) {
      return TokenView(nullptr, 0, 0, 0);  // the constructor does not compile
    } else if constexpr (detail::HasSpan<std::remove_reference_t<X>>) {
      const std::span numbers(x);
      const auto size = static_cast<Index>(numbers.size());
      constexpr bool row = Rows == 1 && Width != 1;
      return TokenView(numbers.data(), row ? 1 : size, row ? size : 1, row ? 1 : size);
    } else if constexpr (Width == 1 && std::remove_cvref_t<X>::IsVectorAtCompileTime) {
      if (x.size() > 1 && x.innerStride() != 1)
        detail::throw_not_contiguous(x.rows(), x.cols(), x.rowStride(), x.colStride());
      return TokenView(x.data(), x.size(), 1, x.size());
    } else {
      return TokenView(x.data(), x.rows(), x.cols(), detail::contiguous_column_stride(x));
    }
  }

  MemberExtent given_;
};

/// A sequence of a member: `Rows` × (Width·T), one step every `Width` columns. An Eigen map.
template <class S, int Rows, int Width = 1>
class SequenceView : public detail::ColumnMap<S, Rows, Dynamic> {
 public:
  using Base = detail::ColumnMap<S, Rows, Dynamic>;
  using Base::operator=;
  /// Another view of the same numbers.
  SequenceView(const SequenceView&) = default;
  SequenceView& operator=(const SequenceView& other) = default;

  /// Views numbers at `data`; columns are `stride` numbers apart.
  EIGEN_ALWAYS_INLINE SequenceView(S* data, Index rows, Index cols, Index stride)
      : Base(data, Rows == Dynamic ? rows : Rows, cols,
             detail::column_stride<Rows, Dynamic>(stride)),
        given_{rows, cols} {}

  /// Views the storage of x. Throws std::invalid_argument when its columns are not contiguous.
  template <class X>
  requires(!std::is_base_of_v<SequenceView, std::remove_cvref_t<X>>)
      SequenceView(X&& x)  // NOLINT: implicit by design
      : SequenceView(from<X>(x)) {
    detail::AssertViewSource<S, X>();
  }

  /// The rows and columns that were passed; a view of fixed size has its own rows().
  const MemberExtent& given() const { return given_; }

  /// Step t, for a member of the given extent.
  EIGEN_ALWAYS_INLINE TokenView<S, Rows, Width> token(Index t, const MemberExtent& step) const {
    Index width = step.width;
    if constexpr (Width == Dynamic)
      if (step.chunks) width = std::min(width, given_.width - t * width);
    return {const_cast<S*>(this->data()) + t * step.width * this->colStride(), given_.rows, width,
            this->colStride()};
  }

  /// `count` columns from column `first` on.
  SequenceView columns(Index first, Index count) const {
    return {const_cast<S*>(this->data()) + first * this->colStride(), given_.rows, count,
            this->colStride()};
  }

  /// `count` rows from row `first` on: one head of stacked heads.
  template <int R = Rows> SequenceView<S, R, Width> rows_of(Index first, Index count) const {
    return {const_cast<S*>(this->data()) + first, count, given_.width, this->colStride()};
  }

 protected:
  /// A view of x. Throws std::invalid_argument when its columns are not contiguous.
  template <class X> static SequenceView from(std::remove_reference_t<X>& x) {
    if constexpr (detail::view_error<S, X>() != detail::ViewError::none)
      return SequenceView(nullptr, 0, 0, 0);  // the constructor does not compile
    else if constexpr (detail::HasSpan<std::remove_reference_t<X>>) {
      const std::span numbers(x);
      const auto size = static_cast<Index>(numbers.size());
      return SequenceView(numbers.data(), Rows == 1 ? 1 : size, Rows == 1 ? size : 1,
                          Rows == 1 ? 1 : size);
    }
    // A sequence of numbers may be a row vector or a column vector.
    else if constexpr (Rows == 1 && std::remove_cvref_t<X>::IsVectorAtCompileTime)
      return SequenceView(x.data(), 1, x.size(), x.innerStride());
    else
      return SequenceView(x.data(), x.rows(), x.cols(), detail::contiguous_column_stride(x));
  }

 private:
  MemberExtent given_;
};

/// A sequence of numbers, one per step: a vector of T entries, or one row of an H×T matrix.
template <class S> class ScalarSequence : public SequenceView<S, 1> {
 public:
  using SequenceView<S, 1>::SequenceView;
  using SequenceView<S, 1>::operator=;
  /// Views one number per token.
  ScalarSequence(const SequenceView<S, 1>& other) : SequenceView<S, 1>(other) {}

  /// The number of token t.
  EIGEN_ALWAYS_INLINE S& token(Index t, const MemberExtent&) const {
    return const_cast<S*>(this->data())[t * this->colStride()];
  }
};

}  // namespace fw
