#pragma once

#include <cstddef>
#include <cstdint>
#include <fastweights/core/abi.hpp>

// clang 14 uses the names of the second line.
#if ((defined __AMX_TILE__ && defined __AMX_BF16__) || \
     (defined __AMXTILE__ && defined __AMXBF16__)) &&  \
    defined __linux__ && defined __x86_64__
#define FASTWEIGHTS_HAS_AMX 1
#define FASTWEIGHTS_AMX amx
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#else
#define FASTWEIGHTS_HAS_AMX 0
#define FASTWEIGHTS_AMX no_amx
#endif

/// \file
/// Intel's matrix extension (AMX): eight tiles of 16 rows of 64 bytes, and an instruction that adds
/// the product of two bf16 tiles to a float tile (Intel 64 and IA-32 Architectures Software
/// Developer's Manual, volume 1, chapter 18; TDPBF16PS in volume 2).
///
/// Available on Linux for x86-64 if the compiler flags enable it (-mamx-tile -mamx-bf16, or an
/// -march that includes them). Code that depends on this is in a namespace named after it, so that
/// translation units with different flags can be linked.

namespace fw::inline FASTWEIGHTS_ABI {

namespace detail {

/// The configuration that LDTILECFG reads: eight tiles of maximal size.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileShapes) == 64);
inline constexpr TileShapes tile_shapes;

#if FASTWEIGHTS_HAS_AMX

template <int T> struct AmxTile;
template <int Sums, int Left, int Right> struct AmxProduct;

// The intrinsics need tile numbers as literals, not as template arguments. For GCC a tile load
// reads no memory, so a barrier keeps earlier stores before it.
#define FASTWEIGHTS_AMX_TILE(T)                                                      \
  template <> struct AmxTile<T> {                                                    \
    static void zero() { _tile_zero(T); }                                            \
    static void load(const void* from, std::size_t stride) {                         \
      asm volatile("" ::: "memory");                                                 \
      _tile_loadd(T, from, stride);                                                  \
    }                                                                                \
    static void store(void* to, std::size_t stride) { _tile_stored(T, to, stride); } \
  }
#define FASTWEIGHTS_AMX_PRODUCT(C, A, B)           \
  template <> struct AmxProduct<C, A, B> {         \
    static void add() { _tile_dpbf16ps(C, A, B); } \
  }
FASTWEIGHTS_AMX_TILE(0);
FASTWEIGHTS_AMX_TILE(1);
FASTWEIGHTS_AMX_TILE(2);
FASTWEIGHTS_AMX_TILE(3);
FASTWEIGHTS_AMX_TILE(4);
FASTWEIGHTS_AMX_TILE(5);
FASTWEIGHTS_AMX_TILE(6);
FASTWEIGHTS_AMX_TILE(7);
FASTWEIGHTS_AMX_PRODUCT(0, 4, 6);
FASTWEIGHTS_AMX_PRODUCT(1, 4, 7);
FASTWEIGHTS_AMX_PRODUCT(2, 5, 6);
FASTWEIGHTS_AMX_PRODUCT(3, 5, 7);
#undef FASTWEIGHTS_AMX_TILE
#undef FASTWEIGHTS_AMX_PRODUCT

/// Owns the tiles of this thread from construction to destruction. Strides are in bytes.
class AmxTiles {
 public:
  AmxTiles() { _tile_loadconfig(&tile_shapes); }
  ~AmxTiles() { _tile_release(); }
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;

  template <int T> void zero() { AmxTile<T>::zero(); }
  template <int T> void load(const void* from, std::size_t stride) {
    AmxTile<T>::load(from, stride);
  }
  template <int T> void store(void* to, std::size_t stride) { AmxTile<T>::store(to, stride); }
  /// Sums += Left · Right
  template <int Sums, int Left, int Right> void multiply() { AmxProduct<Sums, Left, Right>::add(); }
};

// True if the processor has tiles and bf16 products and the operating system permits this process
// to use them.
inline bool request_tiles() {
  constexpr unsigned bf16 = 1u << 22, tile = 1u << 24;
  constexpr long request = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  if ((d & bf16) == 0 || (d & tile) == 0) return false;
  return syscall(SYS_arch_prctl, request, tile_data) == 0;
}

#endif

}  // namespace detail

inline namespace FASTWEIGHTS_AMX {

/// True if this process can use AMX: it is compiled for AMX, the processor has it and the operating
/// system permits it (Linux 5.16 or newer). The first call requests the permission for all threads.
inline bool amx_permitted() {
#if FASTWEIGHTS_HAS_AMX
  static const bool permitted = detail::request_tiles();
  return permitted;
#else
  return false;
#endif
}

}  // namespace FASTWEIGHTS_AMX

}  // namespace fw
