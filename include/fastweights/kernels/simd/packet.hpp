#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <fastweights/core/abi.hpp>
#include <type_traits>

/// \file
/// SIMD with Eigen's packet math: one source for every instruction set that Eigen supports. Scalars
/// without packets use plain numbers as packets of size one.

namespace fw::inline FASTWEIGHTS_ABI::detail {

using Eigen::Index;

template <class S> using Packet = typename Eigen::internal::packet_traits<S>::type;
template <class S> inline constexpr Index lanes = Eigen::internal::unpacket_traits<Packet<S>>::size;

/// Eigen's largest packet of at most N entries of S, and its size; a plain number if all packets
/// are larger.
template <class S, Index N>
using PacketWithin =
    std::conditional_t<(N > 1), typename Eigen::internal::find_best_packet<S, N>::type, S>;
template <class S, Index N>
inline constexpr Index size_within = Eigen::internal::unpacket_traits<PacketWithin<S, N>>::size;

/// Part of a column: R consecutive packets of N entries, R a power of 2. Stored as a binary tree,
/// which compilers keep in registers more reliably than an array. N = 1 is for plain numbers.
///
/// Loads and stores also take a number of `rows` from size/2 to size. The lower half is then the
/// last size/2 of these rows and overlaps the upper half. Both halves compute the same in the rows
/// that they share, so a column of any height needs neither masks nor padding.
template <class S, int R, Index N = lanes<S>> struct Rows {
  using Half = Rows<S, R / 2, N>;
  static constexpr Index size = 2 * Half::size;
  static constexpr int packets = R;
  Half upper, lower;

  static EIGEN_ALWAYS_INLINE Rows all(S x) { return {Half::all(x), Half::all(x)}; }
  static EIGEN_ALWAYS_INLINE Rows load(const S* from, Index rows = size) {
    return {Half::load(from), Half::load(from + rows - Half::size)};
  }
  EIGEN_ALWAYS_INLINE void store(S* to, Index rows = size) const {
    upper.store(to);
    lower.store(to + rows - Half::size);
  }
  /// this += x ∘ factors
  EIGEN_ALWAYS_INLINE void add(const Rows& x, const Rows& factors) {
    upper.add(x.upper, factors.upper);
    lower.add(x.lower, factors.lower);
  }
  /// this += x
  EIGEN_ALWAYS_INLINE void add(const Rows& x) {
    upper.add(x.upper);
    lower.add(x.lower);
  }
  /// this −= x
  EIGEN_ALWAYS_INLINE void subtract(const Rows& x) {
    upper.subtract(x.upper);
    lower.subtract(x.lower);
  }
  EIGEN_ALWAYS_INLINE void scale(const Rows& by) {
    upper.scale(by.upper);
    lower.scale(by.lower);
  }
  /// this ← this ∘ factors; 0 where a factor is 0, even if the entry is infinite
  EIGEN_ALWAYS_INLINE void scale_where_nonzero(const Rows& factors) {
    upper.scale_where_nonzero(factors.upper);
    lower.scale_where_nonzero(factors.lower);
  }
  EIGEN_ALWAYS_INLINE void add(const Rows& x, S factor) { add(x, all(factor)); }
  EIGEN_ALWAYS_INLINE void scale(S factor) { scale(all(factor)); }
  EIGEN_ALWAYS_INLINE S sum() const {
    Half both = upper;
    both.add(lower);
    return both.sum();
  }
};

template <class S, Index N> struct Rows<S, 1, N> {
  using P = PacketWithin<S, N>;
  static constexpr Index size = N;
  static constexpr int packets = 1;
  P packet;

  static EIGEN_ALWAYS_INLINE Rows all(S x) { return {Eigen::internal::pset1<P>(x)}; }
  static EIGEN_ALWAYS_INLINE Rows load(const S* from, Index = size) {
    return {Eigen::internal::ploadu<P>(from)};
  }
  EIGEN_ALWAYS_INLINE void store(S* to, Index = size) const {
    Eigen::internal::pstoreu(to, packet);
  }
  EIGEN_ALWAYS_INLINE void add(const Rows& x, const Rows& factors) {
    packet = Eigen::internal::pmadd(x.packet, factors.packet, packet);
  }
  EIGEN_ALWAYS_INLINE void add(const Rows& x) { packet = Eigen::internal::padd(packet, x.packet); }
  EIGEN_ALWAYS_INLINE void subtract(const Rows& x) {
    packet = Eigen::internal::psub(packet, x.packet);
  }
  EIGEN_ALWAYS_INLINE void scale(const Rows& by) {
    packet = Eigen::internal::pmul(packet, by.packet);
  }
  EIGEN_ALWAYS_INLINE void scale_where_nonzero(const Rows& factors) {
    const P zero = Eigen::internal::pset1<P>(S(0));
    const P product = Eigen::internal::pmul(packet, factors.packet);
    if constexpr (N == 1)
      packet = factors.packet == zero ? zero : product;
    else
      packet =
          Eigen::internal::pselect(Eigen::internal::pcmp_eq(factors.packet, zero), zero, product);
  }
  EIGEN_ALWAYS_INLINE void add(const Rows& x, S factor) { add(x, all(factor)); }
  EIGEN_ALWAYS_INLINE void scale(S factor) { scale(all(factor)); }
  EIGEN_ALWAYS_INLINE S sum() const { return Eigen::internal::predux(packet); }
};

/// x ← min(max(x, low), high). NaN may become any of these or stay.
template <class S, int R, Index N> EIGEN_ALWAYS_INLINE void clamp(Rows<S, R, N>& x, S low, S high) {
  if constexpr (R > 1) {
    clamp(x.upper, low, high);
    clamp(x.lower, low, high);
  } else {
    using P = decltype(x.packet);
    x.packet =
        Eigen::internal::pmin(Eigen::internal::pset1<P>(high),
                              Eigen::internal::pmax(Eigen::internal::pset1<P>(low), x.packet));
  }
}

/// Calls f.template operator()<P>(i) for packets P at entry i, which cover entries first … n − 1
/// once: first the largest packets, then smaller packets for the rest, then plain numbers.
template <class S, Index N = lanes<S>, class F>
EIGEN_ALWAYS_INLINE void for_packets(Index n, const F& f, Index first = 0) {
  const Index end = first + (n - first) / N * N;
  for (Index i = first; i < end; i += N) f.template operator()<PacketWithin<S, N>>(i);
  if constexpr (N > 1) for_packets<S, (size_within<S, N / 2> <= N / 2 ? N / 2 : 1)>(n, f, end);
}

/// Replaces w by w + c, rounded, and c by the rounding error.
template <class Column> EIGEN_ALWAYS_INLINE void carry(Column& w, Column& c) {
  Column sum = w;
  sum.add(c);
  Column added = sum;
  added.subtract(w);
  c.subtract(added);
  w = sum;
}

/// Loads or stores only the entries from `first` to `last` of a column. Loads fill the other
/// entries with zeros. No other memory is accessed.
template <class Column, class S>
EIGEN_ALWAYS_INLINE Column load_part(const S* from, Index first, Index last) {
  if (last - first == Column::size) return Column::load(from);
  S part[Column::size] = {};
  std::copy(from + first, from + last, part + first);
  return Column::load(part);
}
template <class Column, class S>
EIGEN_ALWAYS_INLINE void store_part(const Column& x, S* to, Index first, Index last) {
  if (last - first == Column::size) return x.store(to);
  S part[Column::size];
  x.store(part);
  std::copy(part + first, part + last, to + first);
}

}  // namespace fw::detail
