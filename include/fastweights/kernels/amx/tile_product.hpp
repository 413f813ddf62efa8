#pragma once

#include <fastweights/kernels/amx/bf16.hpp>

/// \file
/// Products of bf16 matrices by tiles. One product computes 32×32 float sums with four tiles of
/// sums, two of the left factor and two of the right factor, so that every loaded tile is used
/// twice.
///
/// Tiles is AmxTiles or a class with the same members: eight tiles of 16 rows of 64 bytes, owned
/// during its lifetime; zero<T>(), load<T>(from, stride), store<T>(to, stride) with the stride in
/// bytes; and multiply<Sums, Left, Right>(), Sums += Left · Right, for Sums 0 to 3, Left 4 and 5,
/// Right 6 and 7.

namespace fw::inline FASTWEIGHTS_ABI::detail {

template <class Tiles> class TileProduct {
 public:
  static constexpr Index size = 32;

  void clear() {
    tiles_.template zero<0>();
    tiles_.template zero<1>();
    tiles_.template zero<2>();
    tiles_.template zero<3>();
  }
  void load(const float* from, Index stride) {
    const float* const below = from + half * stride;
    tiles_.template load<0>(from, bytes(stride));
    tiles_.template load<1>(from + half, bytes(stride));
    tiles_.template load<2>(below, bytes(stride));
    tiles_.template load<3>(below + half, bytes(stride));
  }
  void store(float* to, Index stride) {
    float* const below = to + half * stride;
    tiles_.template store<0>(to, bytes(stride));
    tiles_.template store<1>(to + half, bytes(stride));
    tiles_.template store<2>(below, bytes(stride));
    tiles_.template store<3>(below + half, bytes(stride));
  }
  /// sums += a b, with 32 rows of a and 32 columns of b; `depth` is a multiple of 32. With two
  /// planes it omits the product of both second planes, which is as small as their rounding errors.
  template <int planes> void add(const Bf16Matrix& a, const Bf16Matrix& b, Index depth) {
    if constexpr (planes == 2) {
      add_plane(a.residual(), b, depth);
      add_plane(a, b.residual(), depth);
    }
    add_plane(a, b, depth);
  }

 private:
  static constexpr Index half = size / 2;
  static std::size_t bytes(Index stride) { return 4 * static_cast<std::size_t>(stride); }

  void add_plane(const Bf16Matrix& a, const Bf16Matrix& b, Index depth) {
    for (Index p = 0; p < depth / 2; p += half) {
      tiles_.template load<4>(a.row(0) + p, bytes(a.stride));
      tiles_.template load<5>(a.row(half) + p, bytes(a.stride));
      tiles_.template load<6>(b.row(p), bytes(b.stride));
      tiles_.template load<7>(b.row(p) + half, bytes(b.stride));
      tiles_.template multiply<0, 4, 6>();
      tiles_.template multiply<1, 4, 7>();
      tiles_.template multiply<2, 5, 6>();
      tiles_.template multiply<3, 5, 7>();
    }
  }

  Tiles tiles_;
};

}  // namespace fw::detail
