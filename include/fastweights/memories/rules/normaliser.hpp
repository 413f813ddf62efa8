#pragma once

#include <fastweights/core/scratch.hpp>
#include <fastweights/core/signatures.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/core/strict_math.hpp>
#include <fastweights/kernels/decode/read_product.hpp>
#include <fastweights/math/activations.hpp>
#include <fastweights/memories/rules/sums.hpp>

/// \file
/// The attention normaliser: a policy of the sum rule and the delta rule. It stores z = Σ φ(k) and
/// divides outputs by z·φ(q) + ε. Schlag, Irie, Schmidhuber 2021, arXiv 2102.11174, eq. 12–14 (sum
/// rule) and section 4.2 (delta rule).
///
/// z and W are compensated sums. A plain float sum of ones would stop growing at 2^24 tokens, and
/// an answer whose numerator has stopped decays to 0. The compensation relies on IEEE arithmetic;
/// -ffast-math, which removes it, does not compile (core/strict_math.hpp).
///
/// If z·q + ε is exactly 0, the output is 0 with gradient 0. A small denominator is not treated
/// specially: choose ε > 0 and positive feature maps to avoid it. If the delta rule's z·k + ε is
/// exactly 0, nothing is written.

namespace fw::inline FASTWEIGHTS_ABI {

/// No normaliser: y = W q.
struct NoNormaliser {
  static constexpr bool active = false;  ///< whether outputs are divided
  using Sum = PlainSum;
  /// Nothing is stored.
  template <class C, int Dk> struct State { static constexpr auto names = fw::names(); };
  /// No sizes.
  template <int Dk> State<Extents, Dk> extents(Index) const { return {}; }
  template <class T> NoNormaliser cast() const { return {}; }
  /// Adds nothing.
  template <class Z, class K> EIGEN_ALWAYS_INLINE void write(Z&, const K&) const {}
  template <class Z, class DK> EIGEN_ALWAYS_INLINE void write_vjp(Z&, DK&) const {}
};

/// y = W q / (z·q + ε).
template <class S> struct AttentionNormaliser {
  static constexpr bool active = true;  ///< whether outputs are divided
  using Sum = CompensatedSum;           ///< how the rule sums W
  S epsilon = S(1e-5);

  template <class C, int Dk> struct State {
    vec<C, Dk> sum;           ///< z
    vec<C, Dk> compensation;  ///< the rounding error of z, to be subtracted at the next write
    static constexpr auto names = fw::names("sum", "compensation");
  };
  template <int Dk> State<Extents, Dk> extents(Index dk) const { return {{dk, 1}, {dk, 1}}; }
  template <class T> AttentionNormaliser<T> cast() const { return {T(epsilon)}; }

  /// z += k, compensated.
  template <class Z, class K> EIGEN_ALWAYS_INLINE void write(Z& z, const K& key) const {
    for (Index i = 0; i < key.size(); ++i) {
      const S corrected = key[i] - z.compensation[i];
      const S sum = z.sum[i] + corrected;
      z.compensation[i] = (sum - z.sum[i]) - corrected;
      z.sum[i] = sum;
    }
  }
  /// In exact arithmetic z' = z + k − c and c' = 0.
  template <class Z, class DK> void write_vjp(Z& dz, DK& dkey) const {
    dkey += dz.sum;
    dz.compensation = -dz.sum;
  }

  /// 1 / (weight + ε), or 0 if the denominator is 0.
  S inverse(const S& weight) const {
    const S denominator = weight + epsilon;
    return vanishes(denominator) ? S(0) : S(1) / denominator;
  }
  /// 1 / (z·q + ε), or 0 if the denominator is 0.
  template <class Z, class Q> S inverse(const Z& z, const Q& query) const {
    return inverse(product(z, query));
  }
  /// Adds to the gradients of z and of the query, given that of the inverse.
  template <class Z, class Q, class DQ>
  void inverse_vjp(const Z& z, const Q& query, const S& inverse, const S& dinverse, Z& dz,
                   DQ& dquery) const {
    const S ddenominator = -dinverse * inverse * inverse;
    dz.sum += ddenominator * query;
    dquery += ddenominator * z.sum;
  }

  /// z·k, the total weight of earlier keys; 1 if it is exactly 0, so that the first value of a key
  /// is written with full strength.
  template <class Z, class K> S weight(const Z& z, const K& key) const {
    const S weight = product(z, key);
    return vanishes(weight) ? S(1) : weight;
  }
  /// Adds to the gradients of z and of the key, given that of the weight.
  template <class Z, class K, class DK>
  void weight_vjp(const Z& z, const K& key, const S& dweight, Z& dz, DK& dkey) const {
    if (vanishes(product(z, key))) return;
    dz.sum += dweight * key;
    dkey += dweight * z.sum;
  }

 private:
  template <class Z, class X> static S product(const Z& z, const X& x) {
    return z.sum.cwiseProduct(x).sum();
  }
  // Compares the real part, so that a complex step takes the branch of the real number.
  static bool vanishes(const S& x) { return detail::real_part(x) == 0; }
};

namespace detail {

// The gradients of y = W q.
template <class W, class Q, class Dy, class DW, class DQ>
EIGEN_ALWAYS_INLINE void product_vjp(const W& w, const Q& query, const Dy& dy, DW& dw, DQ& dquery) {
  dw.noalias() += dy * query.transpose();
  dquery.noalias() += w.transpose() * dy;
}

// y = W q, divided by the normaliser if there is one. `s` must have members W and normaliser.
template <class Normaliser, class State, class Q, class Y>
EIGEN_ALWAYS_INLINE void normalised_read(const Normaliser& normaliser, const State& s,
                                         const Q& query, Y& y) {
  set_product_with_vector(y, s.W, query);
  if constexpr (Normaliser::active) y *= normaliser.inverse(s.normaliser, query);
}

template <class Normaliser, class State, class Q, class Dy, class DQ>
EIGEN_ALWAYS_INLINE void normalised_read_vjp(const Normaliser& normaliser, const State& s,
                                             const Q& query, const Dy& dy, State& ds, DQ& dquery) {
  if constexpr (Normaliser::active) {
    using S = typename Q::Scalar;
    scratch<S, Dy::RowsAtCompileTime>(dy.size(), [&](auto& numerator) {
      const S inverse = normaliser.inverse(s.normaliser, query);
      numerator.noalias() = s.W * query;
      const S dinverse = numerator.cwiseProduct(dy).sum();
      numerator = inverse * dy;
      product_vjp(s.W, query, numerator, ds.W, dquery);
      normaliser.inverse_vjp(s.normaliser, query, inverse, dinverse, ds.normaliser, dquery);
    });
  } else {
    product_vjp(s.W, query, dy, ds.W, dquery);
  }
}

}  // namespace detail

}  // namespace fw
