#pragma once

#include <fastweights/kernels/simd/packet.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// exp of a packet of floats, with two thirds of the instructions of Eigen's: x = m ln 2 + r with a
/// whole m and |r| ≤ ½ ln 2, e^r as a polynomial, and 2^m by its bits. Near x = 0, where decays
/// are, m = 0 and the error is that of one rounding; else it is at most two. Results below 2^−127
/// are 0; those of NaN and infinities are exact.
template <class P> EIGEN_ALWAYS_INLINE P exponential(const P& x) {
  namespace internal = Eigen::internal;
  using Whole = typename internal::unpacket_traits<P>::integer_packet;
  const auto all = [](float number) { return internal::pset1<P>(number); };
  constexpr float largest = 88.8f, least = -88.0f;  // with an infinite e^x, and with m = −127
  const P inside = internal::pmin(internal::pmax(x, all(least)), all(largest));
  const P nearest = internal::pfloor(internal::pmadd(inside, all(1.44269504f), all(0.5f)));
  const P m = internal::pmin(nearest, all(127.0f));
  // ln 2 in two parts: m times the first one is exact.
  const P r =
      internal::pmadd(m, all(2.12194440e-4f), internal::pmadd(m, all(-0.693359375f), inside));
  P sum = all(0.000198909808698f);
  for (const float c :
       {0.0013933641032f, 0.0083333109344f, 0.041666465006f, 0.16666666681614f, 0.5f})
    sum = internal::pmadd(sum, r, all(c));
  const P power = internal::padd(internal::pmadd(internal::pmul(r, r), sum, r), all(1.0f));
  const auto exponent = internal::pcast<P, Whole>(internal::padd(m, all(127.0f)));
  const P scale = internal::preinterpret<P>(internal::plogical_shift_left<23>(exponent));
  return internal::pmul(power, scale);
}

/// True of packets that Eigen converts to whole numbers and shifts.
template <class P>
concept HasExponential = requires(const P& x) {
  exponential(x);
  Eigen::internal::plogical_shift_left<23>(
      Eigen::internal::pcast<P, typename Eigen::internal::unpacket_traits<P>::integer_packet>(x));
};

/// x ← exp(x)
template <class S, int R, Index N> EIGEN_ALWAYS_INLINE void exponentiate(Rows<S, R, N>& x) {
  if constexpr (R > 1) {
    exponentiate(x.upper);
    exponentiate(x.lower);
  } else if constexpr (N > 1 && std::is_same_v<S, float> && HasExponential<decltype(x.packet)>) {
    x.packet = exponential(x.packet);
  } else if constexpr (N > 1 && Eigen::internal::packet_traits<S>::HasExp) {
    x.packet = Eigen::internal::pexp(x.packet);
  } else {
    S entries[N];
    x.store(entries);
    for (S& entry : entries) entry = std::exp(entry);
    x = Rows<S, R, N>::load(entries);
  }
}

}  // namespace fw::detail
