#pragma once

#include <bit>
#include <cstdint>
#include <fastweights/kernels/simd/packet.hpp>

/// \file
/// Matrices with a storage type that differs from the computation type, such as 16-bit floats.
/// Loads and stores convert.

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// As Rows, with a single row: for matrices with fewer rows than a packet has lanes.
template <class S> struct OneRow {
  static constexpr Index size = 1;
  S x;

  static EIGEN_ALWAYS_INLINE OneRow all(S y) { return {y}; }
  static EIGEN_ALWAYS_INLINE OneRow load(const S* from) { return {*from}; }
  EIGEN_ALWAYS_INLINE void store(S* to) const { *to = x; }
  EIGEN_ALWAYS_INLINE void add(const OneRow& y) { x += y.x; }
  EIGEN_ALWAYS_INLINE void add(const OneRow& y, S factor) { x += y.x * factor; }
  EIGEN_ALWAYS_INLINE void subtract(const OneRow& y) { x -= y.x; }
  EIGEN_ALWAYS_INLINE void scale(const OneRow& by) { x *= by.x; }
  EIGEN_ALWAYS_INLINE void scale(S factor) { x *= factor; }
};

template <class S> EIGEN_ALWAYS_INLINE void clamp(OneRow<S>& x, S low, S high) {
  x.x = std::min(high, std::max(low, x.x));
}

/// True if Packets<T, S> loads and stores T as packets of S; 8-bit integers it only loads. It does
/// not where Eigen converts number by number, since compilers vectorise a loop over the lanes
/// better.
template <class T, class S> struct Packets : std::false_type {};

#ifdef EIGEN_VECTORIZE_AVX
template <> struct Packets<Eigen::bfloat16, float> : std::true_type {
  using P = Packet<Eigen::bfloat16>;
  static_assert(lanes<Eigen::bfloat16> == lanes<float>);

  static EIGEN_ALWAYS_INLINE Packet<float> load(const Eigen::bfloat16* from) {
    return Eigen::internal::pcast<P, Packet<float>>(Eigen::internal::ploadu<P>(from));
  }
  static EIGEN_ALWAYS_INLINE void store(const Packet<float>& x, Eigen::bfloat16* to) {
    Eigen::internal::pstoreu(to, Eigen::internal::pcast<Packet<float>, P>(x));
  }
};
#endif

// Intrinsics, because Eigen 3.4 with GCC converts half number by number.
#if defined EIGEN_VECTORIZE_AVX && defined __F16C__
template <> struct Packets<Eigen::half, float> : std::true_type {
  static EIGEN_ALWAYS_INLINE Packet<float> load(const Eigen::half* from) {
#ifdef EIGEN_VECTORIZE_AVX512
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
#else
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
#endif
  }
  static EIGEN_ALWAYS_INLINE void store(const Packet<float>& x, Eigen::half* to) {
    constexpr int nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
#ifdef EIGEN_VECTORIZE_AVX512
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtps_ph(x, nearest));
#else
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(x, nearest));
#endif
  }
};
#endif

#ifdef EIGEN_VECTORIZE_AVX2
template <> struct Packets<std::int8_t, float> : std::true_type {
  static EIGEN_ALWAYS_INLINE Packet<float> load(const std::int8_t* from) {
#ifdef EIGEN_VECTORIZE_AVX512
    return _mm512_cvtepi32_ps(
        _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
#else
    return _mm256_cvtepi32_ps(
        _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
#endif
  }
};
#endif

template <class S, class T> EIGEN_ALWAYS_INLINE S converted(const T& x) {
  return static_cast<S>(x);
}
/// bfloat16 is the upper half of a float. A loop over lanes compiles to one shift of a packet.
template <class S> EIGEN_ALWAYS_INLINE S converted(const Eigen::bfloat16& x) {
  return static_cast<S>(Eigen::numext::bit_cast<float>(
      std::uint32_t{Eigen::numext::bit_cast<std::uint16_t>(x)} << 16));
}

/// Column::load and Column::store for memory of type T. Rounds to nearest.
template <class Column> struct Stored;

template <class S> struct Stored<OneRow<S>> {
  template <class T> static EIGEN_ALWAYS_INLINE OneRow<S> load(const T* from) {
    return {converted<S>(*from)};
  }
  template <class T> static EIGEN_ALWAYS_INLINE void store(const OneRow<S>& x, T* to) {
    *to = static_cast<T>(x.x);
  }
};

template <class S> struct Stored<Rows<S, 1>> {
  using Column = Rows<S, 1>;

  template <class T> static EIGEN_ALWAYS_INLINE Column load(const T* from) {
    if constexpr (std::is_same_v<T, S>) {
      return Column::load(from);
    } else if constexpr (Packets<T, S>::value) {
      return {Packets<T, S>::load(from)};
    } else {
      S all[Column::size];
      for (Index i = 0; i < Column::size; ++i) all[i] = converted<S>(from[i]);
      return Column::load(all);
    }
  }
  template <class T> static EIGEN_ALWAYS_INLINE void store(const Column& x, T* to) {
    if constexpr (std::is_same_v<T, S>) {
      x.store(to);
    } else if constexpr (Packets<T, S>::value) {
      Packets<T, S>::store(x.packet, to);
    } else {
      S all[Column::size];
      x.store(all);
      for (Index i = 0; i < Column::size; ++i) to[i] = static_cast<T>(all[i]);
    }
  }
};

template <class S, int R> struct Stored<Rows<S, R>> {
  using Column = Rows<S, R>;
  using Half = typename Column::Half;

  template <class T> static EIGEN_ALWAYS_INLINE Column load(const T* from) {
    return {Stored<Half>::load(from), Stored<Half>::load(from + Half::size)};
  }
  template <class T> static EIGEN_ALWAYS_INLINE void store(const Column& x, T* to) {
    Stored<Half>::store(x.upper, to);
    Stored<Half>::store(x.lower, to + Half::size);
  }
};

/// Stores all but the first `skipped` rows, which are fewer than all.
template <class Column, class T>
EIGEN_ALWAYS_INLINE void store_after(const Column& x, T* to, Index skipped) {
  if (Column::size == 1 || skipped == 0) return Stored<Column>::store(x, to);
  T part[Column::size];
  Stored<Column>::store(x, part);
  std::copy(part + skipped, part + Column::size, to + skipped);
}

}  // namespace fw::detail
