#pragma once

#include <fastweights/kernels/simd/packet.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// N = (I + L)⁻¹ − I for a strictly lower triangular L; both are 64×64 and row-major. Solves
/// N = −L − L N for both diagonal blocks of 32 at the same time. Each row is subtracted from all
/// rows below it as soon as it is known, which avoids long dependent sums. Then N₂₁ = −(I + N₂₂)
/// L₂₁ (I + N₁₁).
inline void solve_chunk(const float* L, float* N) {
  constexpr int half = 32, size = 2 * half;
  using Square = Eigen::Matrix<float, size, size, Eigen::RowMajor>;
  const Eigen::Map<const Square> l(L);
  Eigen::Map<Square> n(N);
  n = -l;
  for (int j = 0; j < half; ++j)
    for (int first = 0; first < size; first += half)
      for (int i = j + 1; i < half; ++i)
        n.row(first + i).segment<half>(first) -=
            l(first + i, first + j) * n.row(first + j).segment<half>(first);
  Eigen::Matrix<float, half, half, Eigen::RowMajor> below = -l.bottomLeftCorner<half, half>();
  below.noalias() -= l.bottomLeftCorner<half, half>() * n.topLeftCorner<half, half>();
  n.bottomLeftCorner<half, half>() = below;
  n.bottomLeftCorner<half, half>().noalias() += n.bottomRightCorner<half, half>() * below;
}

}  // namespace fw::detail
