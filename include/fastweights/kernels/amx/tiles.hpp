#pragma once

#include <cstddef>
#include <cstdint>

// The latter two are what clang 14 calls them.
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
/// the product of two of them, of bf16, to a third, of float (Intel 64 and IA-32 Architectures
/// Software Developer's Manual, volume 1, chapter 18; TDPBF16PS in volume 2).
///
/// Only where the compiler is told of it (-mamx-tile -mamx-bf16, or -march with these) and on Linux
/// for x86-64. What says so, or depends on it, is in a namespace by whether it does.

namespace fw {

namespace detail {

/// What LDTILECFG reads: eight tiles as large as they get.
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

// The intrinsics take the numbers of tiles as literals and not as template arguments. To GCC they
// are statements that read no memory, hence the barrier: what is loaded has been stored before.
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

/// The tiles of this thread, from construction to destruction; strides are in bytes.
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

// The processor has tiles and products of bf16, and the kernel, which keeps the tiles of a thread
// when it runs another, lets this process use them.
inline bool ask_for_tiles() {
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

/// Whether this process may use AMX: it is compiled for it, the processor has it and the kernel,
/// which is asked once and answers for all threads, lets it (Linux 5.16 or newer).
inline bool amx_permitted() {
#if FASTWEIGHTS_HAS_AMX
  static const bool permitted = detail::ask_for_tiles();
  return permitted;
#else
  return false;
#endif
}

}  // namespace FASTWEIGHTS_AMX

}  // namespace fw
