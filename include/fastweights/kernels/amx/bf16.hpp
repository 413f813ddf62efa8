#pragma once

#include <bit>
#include <cstdint>
#include <fastweights/kernels/simd/packet.hpp>

/// \file
/// Matrices of bf16, the upper halves of floats, in pairs as matrix units take them: two neighbours
/// along the index that a product sums over stand in 32 bits, the first of them below.
///
///     the left factor:   (i, p) = x(i, 2p), x(i, 2p+1)
///     the right factor:  (p, j) = x(2p, j), x(2p+1, j)
///
/// Rounded to nearest, even: the error is at most 2⁻⁸ |x|. With two planes the second has what the
/// first leaves of x, rounded in turn: 2⁻¹⁶ |x|. Numbers up to 3.3e38 stay finite.

namespace fw::detail {
inline namespace FASTWEIGHTS_KERNELS {

using Bf16Pair = std::uint32_t;

/// Rows of pairs, `stride` apart, in one plane or in two that are `plane` apart.
struct Bf16Matrix {
  Bf16Pair* data;
  Index stride, plane;
  Bf16Pair* row(Index i) const { return data + i * stride; }
  Bf16Matrix from(Index i, Index p) const { return {row(i) + p, stride, plane}; }
  Bf16Matrix rest() const { return {data + plane, stride, plane}; }
};

/// The bits of the float that x is as a bf16. Carries out of some NaNs make a zero.
EIGEN_ALWAYS_INLINE std::uint32_t nearest_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return (bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u;
}

/// As nearest_bf16, and any NaN stays one.
EIGEN_ALWAYS_INLINE std::uint32_t bf16_bits(float x) {
  return x == x ? nearest_bf16(x) : 0x7fc00000u;
}

/// A pair, or the pair of what this leaves of two numbers; there NaN need not stay, since it has
/// stayed in the pair itself.
template <bool rest> EIGEN_ALWAYS_INLINE Bf16Pair bf16_pair(float first, float second) {
  if constexpr (!rest) return bf16_bits(first) >> 16 | bf16_bits(second);
  first -= std::bit_cast<float>(nearest_bf16(first));
  second -= std::bit_cast<float>(nearest_bf16(second));
  return nearest_bf16(first) >> 16 | nearest_bf16(second);
}

/// f(plane, whether it is that of the rests)
template <int planes, class F> void each_plane(const Bf16Matrix& m, const F& f) {
  f(m, std::false_type{});
  if constexpr (planes == 2) f(m.rest(), std::true_type{});
}

/// x, with rows `stride` apart and an even number of columns, as a left factor.
template <int planes>
void make_left(const float* x, Index stride, Index rows, Index columns, const Bf16Matrix& to) {
  each_plane<planes>(to, [&](const Bf16Matrix& plane, auto rest) {
    for (Index i = 0; i < rows; ++i) {
      const float* const from = x + i * stride;
      Bf16Pair* const pairs = plane.row(i);
      for (Index p = 0; p < columns / 2; ++p)
        pairs[p] = bf16_pair<rest>(from[2 * p], from[2 * p + 1]);
    }
  });
}

/// x, with rows `stride` apart and an even number of them, as a right factor.
template <int planes>
void make_right(const float* x, Index stride, Index rows, Index columns, const Bf16Matrix& to) {
  each_plane<planes>(to, [&](const Bf16Matrix& plane, auto rest) {
    for (Index p = 0; p < rows / 2; ++p) {
      const float *const one = x + 2 * p * stride, *const two = one + stride;
      Bf16Pair* const pairs = plane.row(p);
      for (Index j = 0; j < columns; ++j) pairs[j] = bf16_pair<rest>(one[j], two[j]);
    }
  });
}

/// A left factor as its transpose is a right one, or the other way round. `rows` and `columns` of
/// pairs, multiples of 16; by blocks, which stay in the first-level cache.
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

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
