#pragma once

#include <fastweights/core/signatures.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/kernels/scan/matrix_pass.hpp>

/// \file
/// Summation of the writes of a rule without decay into W: a policy of the sum rule, and of the
/// delta rule with a normaliser.
///
/// A sum in float loses the digits of a write below those of W. After n writes of like size the
/// relative error is up to n·2^−24, and after 2^24 the sum stops growing.

namespace fw::inline FASTWEIGHTS_ABI {

/// W += u kᵀ, rounded at every write.
struct PlainSum {
  static constexpr bool compensated = false;  ///< whether rounding errors are kept
  static constexpr auto decay_kind = detail::DecayKind::none;
  template <class C, int Dv, int Dk> struct State { static constexpr auto names = fw::names(); };
  template <int Dv, int Dk> static State<Extents, Dv, Dk> extents(Index, Index) { return {}; }

  /// Adds with f(W).
  template <class W, class Z, class F> static void add(W& w, Z&, const F& f) { f(w); }
  /// Adds the sum of later writes.
  template <class W, class Z> static void merge(W& w, Z&, const W& later, const Z&) { w += later; }
  /// Nothing: the gradient of W stays.
  template <class W, class Z> static void add_vjp(const W&, Z&) {}
};

/// Compensated summation (Kahan): a second matrix holds the rounding errors of W and
/// adds them at the next write. W then is within two units of rounding of the exact sum of the
/// writes (relative to Σ|u kᵀ|), however many there are. The rounding errors double the state.
/// The compensation relies on IEEE arithmetic; -ffast-math removes it.
///
/// Measured with AVX2 at d = 64 in float: a step takes 2 times and a scan 1.5 times as long as with
/// PlainSum. `Deferred` rounds W once in N tokens, and its step takes 1.2 times as long.
struct CompensatedSum {
  static constexpr bool compensated = true;  ///< whether rounding errors are kept
  static constexpr auto decay_kind = detail::DecayKind::compensated;
  template <class C, int Dv, int Dk> struct State {
    mat<C, Dv, Dk> errors;  ///< the exact sum minus W
    static constexpr auto names = fw::names("errors");
  };
  template <int Dv, int Dk> static State<Extents, Dv, Dk> extents(Index dv, Index dk) {
    return {{dv, dk}};
  }

  /// f(x) adds the writes to a matrix x.
  template <class W, class Z, class F> static void add(W& w, Z& z, const F& f) {
    f(z.errors);
    carry(w, z.errors);
  }
  template <class W, class Z> static void merge(W& w, Z& z, const W& later, const Z& z_later) {
    using S = typename W::Scalar;
    for (Index i = 0; i < w.size(); ++i) {
      const S x = w.data()[i], y = later.data()[i];
      const S sum = x + y, y_added = sum - x, x_added = sum - y_added;
      const S error = (x - x_added) + (y - y_added);  // exact, whichever of x and y is larger
      w.data()[i] = sum;
      z.errors.data()[i] += z_later.errors.data()[i] + error;
    }
    carry(w, z.errors);
  }
  /// In exact arithmetic W' = W + errors + Σ u kᵀ and errors' = 0. `dw` is the gradient of W'.
  template <class W, class Z> static void add_vjp(const W& dw, Z& dz) { dz.errors = dw; }

 private:
  template <class W> static void carry(W& w, W& errors) {
    using S = typename W::Scalar;
    for (Index i = 0; i < w.size(); ++i) {
      const S before = w.data()[i], sum = before + errors.data()[i], added = sum - before;
      w.data()[i] = sum;
      errors.data()[i] -= added;
    }
  }
};

}  // namespace fw
