#pragma once

#if defined __cplusplus && __cplusplus < 202002L && !(defined _MSVC_LANG && _MSVC_LANG >= 202002L)
#error "fastweights needs C++20: compile with -std=c++20"
#endif

#include <Eigen/Core>

/// \file
/// Everything of the library is in an inline namespace named after the instruction set and the
/// alignment with which Eigen compiles, such as `fw::avx2_align32`. Users write `fw::` as ever.
///
/// These two decide how a fixed-size state is laid out and which kernel a memory calls. In a
/// program whose sources have different instruction flags, each source has types and functions of
/// its own. A call from one to the other with a memory, a state or a layer in its signature does
/// not link. A source may keep them to itself, and the program may choose a source at run time.
///
/// This does not cover Eigen itself: its functions have the same names in all sources, and the
/// linker takes one of each. So a program whose sources have different flags must
/// - define EIGEN_MAX_ALIGN_BYTES alike in all of them (32 with AVX2, 64 with AVX-512), otherwise
///   Eigen allocates a matrix in one way and frees it in another;
/// - run on processors that have the instructions of all sources. For other processors, put each
///   instruction set into a shared library of its own with hidden symbols.
/// Nor does it cover flags that change neither Eigen's packets nor its alignment, such as AVX-512
/// with and without BF16.

#if defined EIGEN_VECTORIZE_AVX512
#define FASTWEIGHTS_INSTRUCTIONS avx512
#elif defined EIGEN_VECTORIZE_AVX2 && defined EIGEN_VECTORIZE_FMA
#define FASTWEIGHTS_INSTRUCTIONS avx2
#elif defined EIGEN_VECTORIZE_AVX && defined EIGEN_VECTORIZE_FMA
#define FASTWEIGHTS_INSTRUCTIONS avx_fma
#elif defined EIGEN_VECTORIZE_AVX
#define FASTWEIGHTS_INSTRUCTIONS avx
#elif defined EIGEN_VECTORIZE_SSE4_1
#define FASTWEIGHTS_INSTRUCTIONS sse4
#elif defined EIGEN_VECTORIZE_SSE
#define FASTWEIGHTS_INSTRUCTIONS sse2
#elif defined EIGEN_VECTORIZE_NEON
#define FASTWEIGHTS_INSTRUCTIONS neon
#elif defined EIGEN_VECTORIZE
#define FASTWEIGHTS_INSTRUCTIONS simd
#else
#define FASTWEIGHTS_INSTRUCTIONS scalar
#endif

#define FASTWEIGHTS_JOIN(instructions, alignment) instructions##_align##alignment
#define FASTWEIGHTS_ABI_OF(instructions, alignment) FASTWEIGHTS_JOIN(instructions, alignment)
#define FASTWEIGHTS_ABI FASTWEIGHTS_ABI_OF(FASTWEIGHTS_INSTRUCTIONS, EIGEN_MAX_STATIC_ALIGN_BYTES)
