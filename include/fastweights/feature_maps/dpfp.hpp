#pragma once

#include <fastweights/core/errors.hpp>
#include <fastweights/core/scratch.hpp>
#include <fastweights/feature_maps/columns.hpp>
#include <fastweights/feature_maps/relu.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Deterministic parameter-free projection: products of neighbouring rectified entries, sparse and
/// 2ν times as many as the input has, so that a memory can tell more keys apart.
///
///     r = [max(x, 0); max(−x, 0)]      2d entries
///     φ(x) = [b_1; …; b_ν],  b_j[i] = r[i] r[(i−j) mod 2d]
///
/// Shapes: d → 2dν. Cost: 2dν products a token. ν lies in 1…2d−1, otherwise `features` throws
/// std::invalid_argument. Features are quadratic in x: in float they overflow for entries above
/// 1e19 and vanish below 1e−23.
///
/// Degenerate: φ(x) = 0 if no two positive entries of r are at most ν apart. This needs zeros in x,
/// or ν = 1, odd d and alternating signs (+−+). Such a key writes nothing, such
/// a query reads 0, and SumNormalise and L2Normalise map it to 0.
///
/// Schlag, Irie, Schmidhuber 2021, arXiv 2102.11174, eq. 37 and Listing 1. The index i−j is that of
/// the listing; eq. 37 has i+j, which orders the same products differently within a block.
template <int Nu = 1> struct Dpfp {
  static_assert(Nu >= 1, "Dpfp: nu must be at least 1");
  static constexpr std::string_view name = "Dpfp";
  static constexpr int nu = Nu;  ///< ν

  template <int D> static constexpr int fixed_features = D == Dynamic ? Dynamic : (2 * Nu) * D;
  Index features(Index d) const {
    if (Nu >= 2 * d) throw_nu(d);
    return 2 * d * Nu;
  }

  /// y ← φ(x), of one vector.
  template <class X, class Y> void map(const X& x, Y& y) const {
    scratch<typename X::Scalar, ring_rows<X>>(2 * x.rows() + Nu, [&](auto& ring) {
      detail::for_each_column(
          x.cols(), [&](const auto& in, auto&& out) { map_column(in, ring, out); }, x, y);
    });
  }

  template <class X, class Y, class Dy, class Dx>
  void vjp(const X& x, const Y&, const Dy& dy, Dx& dx) const {
    scratch<typename X::Scalar, ring_rows<X>, 2>(2 * x.rows() + Nu, [&](auto& ring, auto& dring) {
      detail::for_each_column(
          x.cols(),
          [&](const auto& in, const auto& dout, auto&& din) {
            vjp_column(in, ring, dout, dring, din);
          },
          x, dy, dx);
    });
  }

 private:
  template <class X, class Ring, class Y> static void map_column(const X& x, Ring& ring, Y& y) {
    rectify(x, ring);
    for (int j = 1; j <= Nu; ++j)
      block(y, x, j) = rolled(ring, x, 0).cwiseProduct(rolled(ring, x, j));
  }
  template <class X, class Ring, class Dy, class Dx>
  static void vjp_column(const X& x, Ring& ring, const Dy& dy, Ring& dring, Dx& dx) {
    rectify(x, ring);
    dring.setZero();
    for (int j = 1; j <= Nu; ++j) {
      const auto dblock = block(dy, x, j);
      rolled(dring, x, 0) += dblock.cwiseProduct(rolled(ring, x, j));
      rolled(dring, x, j) += dblock.cwiseProduct(rolled(ring, x, 0));
    }
    dring.template tail<Nu>() += dring.template head<Nu>();
    dring = detail::rectified_vjp(ring, dring);
    dx += half(dring, x, 0) - half(dring, x, 1);
  }

  // The ring is r with a copy of its last ν entries in front, so that r rolled by j ≤ ν is a
  // segment.
  template <class X>
  static constexpr int ring_rows = [] {
    constexpr int rows = X::RowsAtCompileTime;
    static_assert(rows == Dynamic || Nu < 2 * rows, "Dpfp: nu must be below twice the rows of x");
    return rows == Dynamic ? Dynamic : 2 * rows + Nu;
  }();
  template <class X>
  static constexpr int rows_of_r =
      X::RowsAtCompileTime == Dynamic ? Dynamic : 2 * X::RowsAtCompileTime;

  // Segments, of compile-time size where x has one, of the ring or its gradient and of y.
  template <class Ring, class X> static auto rolled(Ring&& ring, const X& x, int by) {
    return ring.template segment<rows_of_r<X>>(Nu - by, 2 * x.rows());
  }
  template <class Ring, class X> static auto half(Ring&& ring, const X& x, int which) {
    return ring.template segment<X::RowsAtCompileTime>(Nu + which * x.rows(), x.rows());
  }
  template <class Y, class X> static auto block(Y&& y, const X& x, int j) {
    return y.template segment<rows_of_r<X>>((j - 1) * 2 * x.rows(), 2 * x.rows());
  }

  template <class X, class Ring> static void rectify(const X& x, Ring& ring) {
    half(ring, x, 0) = detail::rectified(x);
    half(ring, x, 1) = detail::rectified(-x);
    ring.template head<Nu>() = ring.template tail<Nu>();
  }

  [[noreturn]] FASTWEIGHTS_COLD static void throw_nu(Index d) {
    detail::throw_invalid({"Dpfp: nu is ", std::to_string(Nu), ", expected 1 to ",
                           std::to_string(2 * d - 1), " for x of ", std::to_string(d), " rows"});
  }
};

}  // namespace fw
