#pragma once

#include <fastweights/core/signatures.hpp>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

/// \file
/// The arguments of a memory that is chosen at run time: views of the caller's numbers, one for
/// each member of what is written, read and given, in the order of the memory's signature.
///
///     memory.step(state, {key, value, beta}, {query}, {output});
///
/// A view never owns and never copies.

namespace fw::inline FASTWEIGHTS_ABI {

/// One member of what a memory writes, reads or gives.
struct SignatureMember {
  std::string_view name;    ///< as in its signature: "key"
  Role role = Role::value;  ///< of an input; outputs have none
  Index rows = 1;           ///< rows of one token
  Index width = 1;          ///< columns of one token
  bool chunks = false;      ///< whether a step takes any number of columns
  bool is_number = false;   ///< one number a token, not a vector of one entry

  /// Its size as the checks and sequences take it.
  MemberExtent extent() const { return {rows, width, chunks}; }
};

/// A view of any Eigen matrix, map or block with contiguous columns, of what converts to a
/// std::span, or of one number. S is const for inputs.
template <class S> struct AnyView {
  S* data = nullptr;       ///< the first number
  Index rows = 0;          ///< of the matrix that was passed
  Index cols = 0;          ///< of the matrix that was passed
  Index row_stride = 1;    ///< numbers from one row to the next
  Index col_stride = 0;    ///< numbers from one column to the next
  bool is_vector = false;  ///< by its type, so that a row may stand for a column

  /// Views nothing.
  AnyView() = default;
  /// Views columns of `r` contiguous numbers that are `stride` numbers apart.
  AnyView(S* numbers, Index r, Index c, Index stride)
      : data(numbers), rows(r), cols(c), col_stride(stride) {}
  /// Views one number.
  AnyView(S& number)  // NOLINT: implicit by design
      : data(&number), rows(1), cols(1), col_stride(1), is_vector(true) {}
  /// Views the storage of x.
  template <class X>
  requires(!std::is_base_of_v<AnyView<std::remove_const_t<S>>, std::remove_cvref_t<X>> &&
           !std::is_base_of_v<AnyView<const S>, std::remove_cvref_t<X>> &&
           !std::is_arithmetic_v<std::remove_cvref_t<X>> &&
           !std::is_same_v<std::remove_cvref_t<X>, std::remove_const_t<S>>)
      AnyView(X&& x) {  // NOLINT: implicit by design
    detail::AssertViewSource<S, X>();
    set<X>(x);
  }
  /// A view of constants of a view of variables.
  template <class T>
  requires(std::is_const_v<S>&& std::is_same_v<const T, S>) AnyView(const AnyView<T>& other)
      : data(other.data),
        rows(other.rows),
        cols(other.cols),
        row_stride(other.row_stride),
        col_stride(other.col_stride),
        is_vector(other.is_vector) {}

  /// `count` rows from row `first` on: one head of stacked heads.
  AnyView rows_of(Index first, Index count) const {
    AnyView part = *this;
    part.data += first * row_stride;
    part.rows = count;
    part.is_vector = false;
    return part;
  }
  /// `count` columns from column `first` on.
  AnyView columns(Index first, Index count) const {
    AnyView part = *this;
    if (is_vector && cols == 1) {  // a sequence of numbers in a column
      part.data += first * row_stride;
      part.rows = count;
      return part;
    }
    part.data += first * col_stride;
    part.cols = count;
    part.is_vector = false;
    return part;
  }

 private:
  template <class X> void set(std::remove_reference_t<X>& x) {
    if constexpr (detail::view_error<S, X>() != detail::ViewError::none) {
      // the constructor does not compile
    } else if constexpr (detail::HasSpan<std::remove_reference_t<X>>) {
      const std::span numbers(x);
      data = numbers.data();
      rows = col_stride = static_cast<Index>(numbers.size());
      cols = 1;
      is_vector = true;
    } else {
      using Plain = std::remove_cvref_t<X>;
      data = x.data();
      rows = x.rows();
      cols = x.cols();
      row_stride = x.rowStride();
      col_stride = x.colStride();
      is_vector = Plain::IsVectorAtCompileTime;
    }
  }
};

/// The views of one record, in order. Refers to them: it is made in a call and used in the call.
template <class S> class AnyViews {
 public:
  /// No views, for a memory that reads without input.
  AnyViews() = default;
  /// Views in braces.
  AnyViews(std::initializer_list<AnyView<S>> each) : first_(std::data(each)), count_(each.size()) {}
  /// Views in an array of the caller's.
  AnyViews(std::span<const AnyView<S>> each) : first_(each.data()), count_(each.size()) {}
  /// Views in a std::vector of the caller's.
  AnyViews(const std::vector<AnyView<S>>& each) : first_(each.data()), count_(each.size()) {}

  /// The number of views.
  std::size_t size() const { return count_; }
  /// View i.
  const AnyView<S>& operator[](std::size_t i) const { return first_[i]; }
  /// The first view.
  const AnyView<S>* begin() const { return first_; }
  /// Behind the last view.
  const AnyView<S>* end() const { return first_ + count_; }

 private:
  const AnyView<S>* first_ = nullptr;
  std::size_t count_ = 0;
};

namespace detail {

[[noreturn]] FASTWEIGHTS_COLD inline void throw_view_count(
    std::string_view rule, std::string_view record, std::size_t given,
    std::span<const SignatureMember> expected) {
  std::string names;
  for (const SignatureMember& each : expected)
    names += (names.empty() ? "" : ", ") + std::string(each.name);
  throw_invalid({rule, ": ", std::to_string(given), " views of what is ", record, ", expected ",
                 std::to_string(expected.size()), expected.empty() ? "" : ": ", names});
}

template <class S>
[[noreturn]] FASTWEIGHTS_COLD void throw_not_contiguous(const AnyView<S>& v,
                                                        std::string_view member) {
  throw_not_contiguous(v.rows, v.cols, v.row_stride, v.col_stride, member);
}

// One member of a token or of a sequence, as the type that the rule takes.
template <class Member, class S> struct MemberFromAny;

template <class S> struct MemberFromAny<S, S> {
  static EIGEN_ALWAYS_INLINE S& make(const AnyView<S>& v, std::string_view) { return *v.data; }
};
// Inline, because a call for each member takes as long as a step of a small state.
template <class S, int Rows, int Width> struct MemberFromAny<TokenView<S, Rows, Width>, S> {
  static EIGEN_ALWAYS_INLINE TokenView<S, Rows, Width> make(const AnyView<S>& v,
                                                            std::string_view name) {
    if (Width == 1 && v.is_vector) {
      const Index size = v.rows * v.cols;
      if (size > 1 && (v.cols == 1 ? v.row_stride : v.col_stride) != 1)
        throw_not_contiguous(v, name);
      return {v.data, size, 1, size};
    }
    if (v.rows > 1 && v.cols > 0 && v.row_stride != 1) throw_not_contiguous(v, name);
    return {v.data, v.rows, v.cols, v.col_stride};
  }
};
template <class S, int Rows, int Width> struct MemberFromAny<SequenceView<S, Rows, Width>, S> {
  static SequenceView<S, Rows, Width> make(const AnyView<S>& v, std::string_view name) {
    if (v.is_vector && Rows == 1 && v.cols == 1) return {v.data, 1, v.rows, v.row_stride};
    if (v.rows > 1 && v.cols > 0 && v.row_stride != 1) throw_not_contiguous(v, name);
    return {v.data, v.rows, v.cols, v.col_stride};
  }
};
template <class S> struct MemberFromAny<ScalarSequence<S>, S> {
  static ScalarSequence<S> make(const AnyView<S>& v, std::string_view name) {
    return ScalarSequence<S>(MemberFromAny<SequenceView<S, 1>, S>::make(v, name));
  }
};

// Numbers are references, which carry no size to check.
template <class R, class S, std::size_t... I>
EIGEN_ALWAYS_INLINE void check_numbers([[maybe_unused]] std::string_view rule,
                                       [[maybe_unused]] std::span<const SignatureMember> members,
                                       [[maybe_unused]] const AnyViews<S>& views,
                                       std::index_sequence<I...>) {
  [[maybe_unused]] const auto check = [&](std::size_t i) {
    const Index size = views[i].rows * views[i].cols;
    if (size != 1) throw_mismatch(rule, members[i].name, size, "numbers", 1, "one token");
  };
  ((std::is_same_v<member_t<R, I>, S> ? check(I) : void()), ...);
}

// The record of type R with these views; their number is checked. Functions with a sequence of
// indices and no lambdas, which compilers would call.
template <class R, class S, std::size_t... I>
EIGEN_ALWAYS_INLINE R record_of([[maybe_unused]] const AnyViews<S>& views,
                                std::index_sequence<I...>) {
  return R{MemberFromAny<member_t<R, I>, S>::make(views[I], R::names[I])...};
}
template <class R, class S> EIGEN_ALWAYS_INLINE R record_of(const AnyViews<S>& views) {
  return record_of<R>(views, std::make_index_sequence<member_count<R>>{});
}

}  // namespace detail

}  // namespace fw
