#pragma once

#include <bit>
#include <cstdint>
#include <fastweights/kernels/simd/packet.hpp>

/// \file
/// Matrices of bf16, the upper halves of floats, in the layout of matrix units: 32 bits hold a pair
/// of neighbours along the summation index of a product, the first one in the lower half.
///
///     the left factor:   (i, p) = x(i, 2p), x(i, 2p+1)
///     the right factor:  (p, j) = x(2p, j), x(2p+1, j)
///
/// Rounded to nearest even, with an error of at most 2⁻⁸ |x|. A second plane holds the rounding
/// error of the first, rounded as well; the error of both is at most 2⁻¹⁶ |x|. Numbers up to 3.3e38
/// stay finite.

namespace fw::inline FASTWEIGHTS_ABI::detail {

using Bf16Pair = std::uint32_t;

/// Rows of pairs with distance `stride`, in one plane or in two planes with distance `plane`.
struct Bf16Matrix {
  Bf16Pair* data;
  Index stride, plane;
  Bf16Pair* row(Index i) const { return data + i * stride; }
  Bf16Matrix from(Index i, Index p) const { return {row(i) + p, stride, plane}; }
  Bf16Matrix residual() const { return {data + plane, stride, plane}; }
};

/// x rounded to bf16, as the bits of a float. Some NaNs overflow to zero.
EIGEN_ALWAYS_INLINE std::uint32_t nearest_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return (bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u;
}

/// As nearest_bf16, but NaN stays NaN.
EIGEN_ALWAYS_INLINE std::uint32_t bf16_bits(float x) {
  return x == x ? nearest_bf16(x) : 0x7fc00000u;
}

/// A pair of rounded numbers, or with `residual` the pair of their rounding errors. The rounding
/// errors need not preserve NaN, since the first pair does.
template <bool residual> EIGEN_ALWAYS_INLINE Bf16Pair bf16_pair(float first, float second) {
  if constexpr (!residual) return bf16_bits(first) >> 16 | bf16_bits(second);
  first -= std::bit_cast<float>(nearest_bf16(first));
  second -= std::bit_cast<float>(nearest_bf16(second));
  return nearest_bf16(first) >> 16 | nearest_bf16(second);
}

/// Calls f(plane, whether it is the plane of rounding errors) for each plane.
template <int planes, class F> void for_each_plane(const Bf16Matrix& m, const F& f) {
  f(m, std::false_type{});
  if constexpr (planes == 2) f(m.residual(), std::true_type{});
}

/// Converts x, with row stride `stride` and an even number of columns, to a left factor.
template <int planes>
void make_left(const float* x, Index stride, Index rows, Index columns, const Bf16Matrix& to) {
  for_each_plane<planes>(to, [&](const Bf16Matrix& plane, auto residual) {
    for (Index i = 0; i < rows; ++i) {
      const float* const from = x + i * stride;
      Bf16Pair* const pairs = plane.row(i);
      for (Index p = 0; p < columns / 2; ++p)
        pairs[p] = bf16_pair<residual>(from[2 * p], from[2 * p + 1]);
    }
  });
}

/// Converts x, with row stride `stride` and an even number of rows, to a right factor.
template <int planes>
void make_right(const float* x, Index stride, Index rows, Index columns, const Bf16Matrix& to) {
  for_each_plane<planes>(to, [&](const Bf16Matrix& plane, auto residual) {
    for (Index p = 0; p < rows / 2; ++p) {
      const float *const one = x + 2 * p * stride, *const two = one + stride;
      Bf16Pair* const pairs = plane.row(p);
      for (Index j = 0; j < columns; ++j) pairs[j] = bf16_pair<residual>(one[j], two[j]);
    }
  });
}

/// Converts a left factor x to the right factor xᵀ, or a right factor to a left one. `rows` and
/// `columns` count pairs and are multiples of 16. Works on blocks that fit in the first-level
/// cache.
template <int planes>
void transpose_pairs(const Bf16Matrix& from, Index rows, Index columns, const Bf16Matrix& to) {
  constexpr Index block = 16;
  for (int plane = 0; plane < planes; ++plane)
    for (Index i = 0; i < rows; i += block)
      for (Index p = 0; p < columns; p += block)
        for (Index q = p; q < p + block; ++q) {
          const Bf16Pair* const in = from.data + plane * from.plane + q;
          Bf16Pair* const out = to.row(q) + plane * to.plane;
          for (Index j = i; j < i + block; ++j) out[j] = in[j * from.stride];
        }
}

}  // namespace fw::detail
