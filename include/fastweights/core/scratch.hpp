#pragma once

#include <Eigen/Core>
#include <array>
#include <cstddef>
#include <fastweights/core/abi.hpp>
#include <limits>
#include <tuple>
#include <utility>

namespace fw::inline FASTWEIGHTS_ABI {

namespace detail {

// With FASTWEIGHTS_POISON_SCRATCH, which the tests define, uninitialised scratch holds NaN.
template <class V> EIGEN_ALWAYS_INLINE void poison([[maybe_unused]] V& v) {
#ifdef FASTWEIGHTS_POISON_SCRATCH
  v.setConstant(typename V::Scalar(std::numeric_limits<double>::quiet_NaN()));
#endif
}

template <class S, int N, class F, std::size_t... I>
EIGEN_ALWAYS_INLINE void fixed_scratch(F& f, std::index_sequence<I...>) {
  std::array<Eigen::Matrix<S, N, 1>, sizeof...(I)> vectors;
  (poison(vectors[I]), ...);
  f(vectors[I]...);
}

// Not inlined: alloca in a loop body would free the stack only when the surrounding function ends.
template <class S, class F, std::size_t... I>
EIGEN_DONT_INLINE void dynamic_scratch(Eigen::Index n, F& f, std::index_sequence<I...>) {
  namespace internal = Eigen::internal;  // which the macro names
  ei_declare_aligned_stack_constructed_variable(S, data, static_cast<std::size_t>(n) * sizeof...(I),
                                                nullptr);
  using Vector = Eigen::Map<Eigen::Matrix<S, Eigen::Dynamic, 1>>;
  auto vectors = std::make_tuple(Vector(data + static_cast<Eigen::Index>(I) * n, n)...);
  (poison(std::get<I>(vectors)), ...);
  f(std::get<I>(vectors)...);
}

}  // namespace detail

/// For the lambda of a scratch in a write: compilers do not inline one with several callers, and
/// the call takes longer than a write to a tiny matrix. Stands before the lambda's body.
#if defined __GNUC__
#define FASTWEIGHTS_INLINE_LAMBDA __attribute__((always_inline))
#else
#define FASTWEIGHTS_INLINE_LAMBDA
#endif

/// Calls f with Count uninitialised vectors of n entries that live for the call. Vectors of fixed
/// size N are on the stack; dynamic vectors too, up to Eigen's EIGEN_STACK_ALLOCATION_LIMIT (128
/// KiB together). So a step needs neither heap nor a member buffer.
template <class S, int N, int Count = 1, class F>
EIGEN_ALWAYS_INLINE void scratch([[maybe_unused]] Eigen::Index n, F&& f) {
  constexpr auto each = std::make_index_sequence<static_cast<std::size_t>(Count)>{};
  if constexpr (N == Eigen::Dynamic)
    detail::dynamic_scratch<S>(n, f, each);
  else
    detail::fixed_scratch<S, N>(f, each);
}

/// As scratch, with matrices of `rows` × `cols` entries.
template <class S, int Count = 1, class F>
void matrix_scratch(Eigen::Index rows, Eigen::Index cols, F&& f) {
  using Matrix = Eigen::Map<Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic>>;
  scratch<S, Eigen::Dynamic, Count>(rows * cols, [&](auto&... vectors) {
    auto matrices = std::make_tuple(Matrix(vectors.data(), rows, cols)...);
    std::apply(f, matrices);
  });
}

}  // namespace fw
