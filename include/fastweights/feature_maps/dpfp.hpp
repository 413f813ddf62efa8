#pragma once

#include <fastweights/core/scratch.hpp>
#include <fastweights/feature_maps/relu.hpp>

namespace fw {

/// Deterministic parameter-free projection: products of neighbouring rectified entries, sparse and
/// 2ν times as many as the input has, so that a memory can keep more keys apart.
///
///     r = [max(x, 0); max(−x, 0)]      2d entries
///     φ(x) = [b_1; …; b_ν],  b_j[i] = r[i] r[(i−j) mod 2d]
///
/// Shapes: d → 2dν. Cost: 2dν products a token. ν lies in 1…2d−1, otherwise `features` throws
/// std::invalid_argument. The features are squares of the scale of x: in float they overflow from
/// 1e19 on and vanish below 1e−23.
///
/// Degenerate: φ(x) = 0 wherever no two entries of r at most ν apart are positive, which takes zero
/// entries in x, or ν = 1, odd d and signs that alternate (+−+). Such a key writes nothing, such
/// a query reads 0, and SumNormalise and L2Normalise leave it 0.
///
/// Schlag, Irie, Schmidhuber 2021, arXiv 2102.11174, eq. 37 and Listing 1. The index i−j is that of
/// the listing; eq. 37 has i+j, which orders the same products differently within a block.
template <int Nu = 1> struct Dpfp {
  static_assert(Nu >= 1, "Dpfp: nu must be at least 1");
  static constexpr std::string_view name = "Dpfp";
  static constexpr int nu = Nu;

  template <int D> static constexpr int fixed_features = D == Dynamic ? Dynamic : 2 * D* Nu;
  Index features(Index d) const {
    if (Nu >= 2 * d) throw_nu(d);
    return 2 * d * Nu;
  }

  template <class X, class Y> void map(const X& x, Y& y) const {
    scratch<typename X::Scalar, rectified_rows<X>>(2 * x.rows(), [&](auto& r) {
      for (Index t = 0; t < x.cols(); ++t) {
        rectify(x.col(t), r);
        for (Index j = 1; j <= Nu; ++j) {
          auto block = y.col(t).segment((j - 1) * r.size(), r.size());
          const Index rest = r.size() - j;
          block.tail(rest) = r.tail(rest).cwiseProduct(r.head(rest));
          block.head(j) = r.head(j).cwiseProduct(r.tail(j));
        }
      }
    });
  }

  template <class X, class Y, class Dy, class Dx>
  void vjp(const X& x, const Y&, const Dy& dy, Dx& dx) const {
    scratch<typename X::Scalar, rectified_rows<X>, 2>(2 * x.rows(), [&](auto& r, auto& dr) {
      const Index d = x.rows();
      for (Index t = 0; t < x.cols(); ++t) {
        rectify(x.col(t), r);
        rectified_gradient(r, dy.col(t), dr);
        dr = detail::rectified_vjp(r, dr);
        dx.col(t) += dr.head(d) - dr.tail(d);
      }
    });
  }

 private:
  template <class X>
  static constexpr int rectified_rows = [] {
    constexpr int rows = X::RowsAtCompileTime;
    static_assert(rows == Dynamic || Nu < 2 * rows, "Dpfp: nu must be below twice the rows of x");
    return rows == Dynamic ? Dynamic : 2 * rows;
  }();

  template <class X, class R> static void rectify(const X& x, R& r) {
    r.head(x.size()) = detail::rectified(x);
    r.tail(x.size()) = detail::rectified(-x);
  }

  // The gradient of r from that of all the products it goes into.
  template <class R, class Dy, class Dr>
  static void rectified_gradient(const R& r, const Dy& dy, Dr& dr) {
    dr.setZero();
    for (Index j = 1; j <= Nu; ++j) {
      const auto block = dy.segment((j - 1) * r.size(), r.size());
      const Index rest = r.size() - j;
      dr.tail(rest) += block.tail(rest).cwiseProduct(r.head(rest));
      dr.head(rest) += block.tail(rest).cwiseProduct(r.tail(rest));
      dr.head(j) += block.head(j).cwiseProduct(r.tail(j));
      dr.tail(j) += block.head(j).cwiseProduct(r.head(j));
    }
  }

  [[noreturn, gnu::cold]] static void throw_nu(Index d) {
    throw std::invalid_argument("Dpfp: nu is " + std::to_string(Nu) + ", expected 1 to " +
                                std::to_string(2 * d - 1) + " for x of " + std::to_string(d) +
                                " rows");
  }
};

}  // namespace fw
