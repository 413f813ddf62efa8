#pragma once

#include <bit>
#include <cstdint>
#include <fastweights/kernels/packet.hpp>

/// \file
/// Matrices whose entries are stored in another type than they are computed in, such as 16-bit
/// floats: converted on the way from and to memory, by Eigen's packets where it has them.

namespace fw::detail {
inline namespace FASTWEIGHTS_KERNELS {

/// As Rows, of a single row: for matrices with fewer rows than a packet has lanes.
template <class S> struct OneRow {
  static constexpr Index size = 1;
  S x;

  static EIGEN_ALWAYS_INLINE OneRow all(S y) { return {y}; }
  static EIGEN_ALWAYS_INLINE OneRow load(const S* from) { return {*from}; }
  EIGEN_ALWAYS_INLINE void store(S* to) const { *to = x; }
  EIGEN_ALWAYS_INLINE void add(const OneRow& y) { x += y.x; }
  EIGEN_ALWAYS_INLINE void add(const OneRow& y, S factor) { x += y.x * factor; }
  EIGEN_ALWAYS_INLINE void scale(const OneRow& by) { x *= by.x; }
  EIGEN_ALWAYS_INLINE void scale(S factor) { x *= factor; }
};

/// P, half of it, half of that: the first of `size` lanes, or void.
template <Index size, class P> constexpr auto packet_of_size() {
  using Traits = Eigen::internal::unpacket_traits<P>;
  if constexpr (Traits::size == size)
    return std::type_identity<P>();
  else if constexpr (Traits::size < size || std::is_same_v<P, typename Traits::half>)
    return std::type_identity<void>();
  else
    return packet_of_size<size, typename Traits::half>();
}
/// The packet of as many T as a packet of S has lanes.
template <class T, class S>
using AlikePacket =
    typename decltype(packet_of_size<lanes<S>,
                                     typename Eigen::internal::packet_traits<T>::type>())::type;

/// Whether Eigen converts between 16-bit floats and S by the packet. Only asked from AVX on: its
/// packets of halves for SSE are MMX's, others are loops over the lanes, which compilers do better.
template <class T, class S> constexpr bool casts_packets() {
#ifdef EIGEN_VECTORIZE_AVX
  if constexpr (sizeof(T) == 2 && std::is_same_v<S, float>)
    return Eigen::internal::type_casting_traits<T, S>::VectorizedCast &&
           Eigen::internal::type_casting_traits<S, T>::VectorizedCast &&
           !std::is_void_v<AlikePacket<T, S>>;
#endif
  return false;
}

template <class S, class T> EIGEN_ALWAYS_INLINE S converted(const T& x) {
  return static_cast<S>(x);
}
/// The upper half of a float: in a loop over lanes a shift of all of them.
template <class S> EIGEN_ALWAYS_INLINE S converted(const Eigen::bfloat16& x) {
  return static_cast<S>(std::bit_cast<float>(std::uint32_t{std::bit_cast<std::uint16_t>(x)} << 16));
}

/// Column::load and store for columns of T. Rounds to nearest.
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
    } else if constexpr (casts_packets<T, S>()) {
      using P = AlikePacket<T, S>;
      return {Eigen::internal::pcast<P, Packet<S>>(Eigen::internal::ploadu<P>(from))};
    } else {
      S all[Column::size];
      for (Index i = 0; i < Column::size; ++i) all[i] = converted<S>(from[i]);
      return Column::load(all);
    }
  }
  template <class T> static EIGEN_ALWAYS_INLINE void store(const Column& x, T* to) {
    if constexpr (std::is_same_v<T, S>) {
      x.store(to);
    } else if constexpr (casts_packets<T, S>()) {
      using P = AlikePacket<T, S>;
      Eigen::internal::pstoreu(to, Eigen::internal::pcast<Packet<S>, P>(x.packet));
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

/// Stores all but the first `skipped` rows.
template <class Column, class T>
EIGEN_ALWAYS_INLINE void store_behind(const Column& x, T* to, Index skipped) {
  if (skipped == 0) return Stored<Column>::store(x, to);
  T part[Column::size];
  Stored<Column>::store(x, part);
  std::copy(part + skipped, part + Column::size, to + skipped);
}

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
