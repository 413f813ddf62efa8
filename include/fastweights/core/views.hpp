#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <fastweights/core/abi.hpp>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

/// \file
/// Views of tokens and sequences: Eigen maps that never own and never copy. A token is one column,
/// or `width` columns for rules that take several at a time. A sequence is D×T column-major with
/// one token per column, which has the memory layout of NumPy's `[T, D]`. A view converts
/// implicitly from any Eigen matrix, map or block with contiguous columns; an expression must be
/// evaluated first. A view of a temporary is valid only until the end of the call, so give
/// longer-lived results a named matrix.

#if !EIGEN_VERSION_AT_LEAST(3, 4, 0)
#error "fastweights needs Eigen 3.4 or newer"
#endif

namespace fw::inline FASTWEIGHTS_ABI {

using Eigen::Dynamic;
using Eigen::Index;

/// The size of a record's member: rows, and columns per step. A step of a member for chunks may
/// have any number of columns, at least one. A sequence of chunks is split every `width` columns,
/// and the last step has the remaining columns.
struct MemberExtent {
  Index rows = 1;
  Index width = 1;
  bool chunks = false;
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

template <class S, class X> constexpr void check_view_source() {
  using Plain = std::remove_cvref_t<X>;
  static_assert(decltype(is_dense(std::declval<Plain&>()))::value,
                "fastweights: pass an Eigen matrix, map or block here");
  static_assert(std::is_same_v<typename Plain::Scalar, std::remove_const_t<S>>,
                "fastweights: the scalar type differs from the memory's; cast it first");
  static_assert((Plain::Flags & Eigen::DirectAccessBit) != 0,
                "fastweights: an expression has no storage to view; evaluate it first");
  static_assert(std::is_const_v<S> || ((Plain::Flags & Eigen::LvalueBit) != 0 &&
                                       !std::is_const_v<std::remove_reference_t<X>>),
                "fastweights: an output must be writable");
  static_assert(std::is_const_v<S> || std::is_lvalue_reference_v<X> ||
                    !std::is_base_of_v<Eigen::PlainObjectBase<Plain>, Plain>,
                "fastweights: an output must outlive the call; give the matrix a name");
}

// The distance between the columns of x, whose columns must be contiguous.
template <class X> Index contiguous_column_stride(const X& x) {
  const bool contiguous = x.rows() <= 1 || x.cols() == 0 || x.rowStride() == 1;
  if (!contiguous) throw std::invalid_argument("fastweights: a token must be contiguous in memory");
  return x.colStride();
}

}  // namespace detail

/// One step of a member: `Rows` × `Width`, usually a vector. An Eigen map; S is const for inputs.
template <class S, int Rows, int Width = 1>
class TokenView : public detail::ColumnMap<S, Rows, Width> {
 public:
  using Base = detail::ColumnMap<S, Rows, Width>;
  using Base::operator=;
  TokenView(const TokenView&) = default;
  TokenView& operator=(const TokenView& other) = default;  // copies the entries, as Eigen::Map does

  EIGEN_ALWAYS_INLINE TokenView(S* data, Index rows, Index width, Index stride)
      : Base(data, Rows == Dynamic ? rows : Rows, Width == Dynamic ? width : Width,
             detail::column_stride<Rows, Width>(stride)),
        given_{rows, width} {}

  /// Views the storage of x. Throws std::invalid_argument when its entries are not contiguous.
  template <class X>
  requires(!std::is_base_of_v<TokenView, std::remove_cvref_t<X>>) EIGEN_ALWAYS_INLINE
      TokenView(X&& x)  // NOLINT: implicit by design
      : TokenView(from(x)) {
    detail::check_view_source<S, X>();
  }

  /// The size of the matrix that was passed, which the checks compare with the expected size.
  const MemberExtent& given() const { return given_; }

 private:
  template <class X> static EIGEN_ALWAYS_INLINE TokenView from(X& x) {
    if constexpr (Width == 1 && std::remove_cvref_t<X>::IsVectorAtCompileTime) {
      if (x.size() > 1 && x.innerStride() != 1)
        throw std::invalid_argument("fastweights: a token must be contiguous in memory");
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
  SequenceView(const SequenceView&) = default;
  SequenceView& operator=(const SequenceView& other) = default;

  EIGEN_ALWAYS_INLINE SequenceView(S* data, Index rows, Index cols, Index stride)
      : Base(data, Rows == Dynamic ? rows : Rows, cols,
             detail::column_stride<Rows, Dynamic>(stride)),
        given_{rows, cols} {}

  /// Views the storage of x. Throws std::invalid_argument when its columns are not contiguous.
  template <class X>
  requires(!std::is_base_of_v<SequenceView, std::remove_cvref_t<X>>)
      SequenceView(X&& x)  // NOLINT: implicit by design
      : SequenceView(from(x)) {
    detail::check_view_source<S, X>();
  }

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
  template <class X> static SequenceView from(X& x) {
    // A sequence of numbers may be a row vector or a column vector.
    if constexpr (Rows == 1 && std::remove_cvref_t<X>::IsVectorAtCompileTime)
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
  ScalarSequence(const SequenceView<S, 1>& other) : SequenceView<S, 1>(other) {}

  EIGEN_ALWAYS_INLINE S& token(Index t, const MemberExtent&) const {
    return const_cast<S*>(this->data())[t * this->colStride()];
  }
};

}  // namespace fw
