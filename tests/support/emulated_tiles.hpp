#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fastweights/kernels/amx/tiles.hpp>

/// An emulation of the AMX tile instructions in plain C++, from their pseudocode (Intel 64 and
/// IA-32 Architectures Software Developer's Manual, volume 2). One difference: subnormal numbers
/// keep their values here, but the instructions treat them as zero.
class EmulatedTiles {
 public:
  EmulatedTiles() { configure(&fw::detail::tile_shapes); }
  EmulatedTiles(const EmulatedTiles&) = delete;
  EmulatedTiles& operator=(const EmulatedTiles&) = delete;

  template <int T> void zero() { zero(T); }
  template <int T> void load(const void* from, std::size_t stride) { load(T, from, stride); }
  template <int T> void store(void* to, std::size_t stride) const { store(T, to, stride); }
  template <int Sums, int Left, int Right> void multiply() { multiply(Sums, Left, Right); }

  // The instructions LDTILECFG, TILEZERO, TILELOADD, TILESTORED, TDPBF16PS.
  void configure(const void* shapes) {
    std::memcpy(&shapes_, shapes, sizeof shapes_);
    for (int t = 0; t < 8; ++t) zero(t);
  }
  void zero(int t) { std::memset(tiles_[t], 0, sizeof tiles_[t]); }
  void load(int t, const void* from, std::size_t stride) {
    zero(t);
    for (std::size_t i = 0; i < shapes_.rows[t]; ++i)
      std::memcpy(tiles_[t][i], static_cast<const char*>(from) + i * stride, shapes_.row_bytes[t]);
  }
  void store(int t, void* to, std::size_t stride) const {
    for (std::size_t i = 0; i < shapes_.rows[t]; ++i)
      std::memcpy(static_cast<char*>(to) + i * stride, tiles_[t][i], shapes_.row_bytes[t]);
  }
  // The first and the second numbers of the pairs have separate sums.
  void multiply(int c, int a, int b) {
    const int columns = shapes_.row_bytes[c] / 4, depth = shapes_.row_bytes[a] / 4;
    for (int i = 0; i < shapes_.rows[c]; ++i) {
      float even[16] = {}, odd[16] = {};
      for (int p = 0; p < depth; ++p)
        for (int j = 0; j < columns; ++j) {
          const std::uint32_t left = tiles_[a][i][p], right = tiles_[b][p][j];
          even[j] += first(left) * first(right);
          odd[j] += second(left) * second(right);
        }
      for (int j = 0; j < columns; ++j) {
        const float sum = std::bit_cast<float>(tiles_[c][i][j]) + (even[j] + odd[j]);
        tiles_[c][i][j] = std::bit_cast<std::uint32_t>(sum);
      }
    }
  }

 private:
  static float first(std::uint32_t pair) { return std::bit_cast<float>(pair << 16); }
  static float second(std::uint32_t pair) { return std::bit_cast<float>(pair & 0xffff0000u); }

  fw::detail::TileShapes shapes_;
  std::uint32_t tiles_[8][16][16];
};
