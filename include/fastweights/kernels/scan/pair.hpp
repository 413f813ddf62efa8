#pragma once

#include <cmath>
#include <fastweights/kernels/simd/prefetch.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// The coefficients of a correction. e is its error, u its update. β is one number or one number
/// per value row. a is the look-up key and b the write key; both are k in most rules:
///
///     W̄ = decay W,   e = value_scale v − retrieved_scale W̄ a,   u = β ∘ e
///     W = W̄ + u bᵀ,   y = read_scale W q
template <class S> struct TokenCoefficients {
  S value_scale = S(1), retrieved_scale = S(1), beta = S(1), read_scale = S(1), decay = S(1);
};

/// A correction of W by a token (docs/design.md, "One form for the family"). Most rules have one
/// per token. Only the last one of a token has an output; the others have any valid query. Only the
/// first one has decays.
template <class S> struct Correction {
  const S *lookup, *key, *value, *query;  // a, b, v, q
  const S* bonus_key;                     // y has bonus_key·q times u; b, unless the read is first
  const S *betas, *decays;                // per row, and per row or column; null for one number
  S *output, *error;                      // null if not needed
  TokenCoefficients<S> coefficients;
};

/// The order of a rule's actions.
struct UpdateOrder {
  bool lookup_before_decay = false;  // e = value_scale v − retrieved_scale W a
  bool reads_first = false;  // y = read_scale W q + (bonus_key·q) u, with W before the token
};

/// The columns of a sequence, one per token.
template <class S> struct Columns {
  S* data = nullptr;
  Index stride = 0;
  EIGEN_ALWAYS_INLINE S* operator()(Index t) const {
    return data == nullptr ? nullptr : data + t * stride;
  }
  operator Columns<const S>() const { return {data, stride}; }
  Columns from(Index t) const { return {(*this)(t), stride}; }
};

/// Two tokens with coefficients for products with the state W before both tokens:
///
///     e_1 = value_scale_1 v_1 − retrieved_scale_1 W a_1                   u_1 = β_1 ∘ e_1
///     e_2 = value_scale_2 v_2 − retrieved_scale_2 W a_2 − key_key u_1     u_2 = β_2 ∘ e_2
///     y_1 = read_scale_1 W q_1 + key_query_1 u_1
///     y_2 = read_scale_2 W q_2 + key_query_2 u_2 + cross_key_query u_1
///     W ← decay W + write_scale_1 u_1 b_1ᵀ + write_scale_2 u_2 b_2ᵀ
///
/// The scales of writes are for one decay per token. With one decay per column, keys and queries
/// include the decays.
template <class S> struct Pair {
  struct One {
    const S *lookup_key, *query, *key;  // a, q, b
    const S *value, *betas;             // betas is null if β is one number
    S *output, *error;                  // null if not needed; error is e
    S value_scale = S(1), retrieved_scale = S(1), beta = S(1), read_scale = S(1), key_query = S(0),
      write_scale = S(1);
    const S* row_decays = nullptr;  // DecayKind::per_value_row; null for no decay
  };
  One one, two;
  const S* decays = nullptr;  // one decay per column
  S key_key, cross_key_query, decay;
  S previous_products[4];  // k_1·q_1, k_2·q_1, k_1·q_2, k_2·q_2 with the keys of the previous pair
  Prefetches<S> prefetches;
};

/// The decay of a matrix by one number per token, without a multiplication of the matrix at every
/// token. The matrix is stored divided by a divisor, which decays instead. When the divisor leaves
/// [1, 2048], the next pass multiplies the stored matrix, and the divisor starts at 1024 again.
/// Stored entries are never larger than those of the matrix, so they do not overflow where the
/// matrix does not. Entries below 2^10 times the smallest normal number lose up to 10 bits.
template <class S> class DeferredDecay {
 public:
  static constexpr S start = S(1024);

  /// Decays the matrix and returns the factor for the stored matrix, 1 at most tokens.
  S decay(S factor) {
    const S decayed = divisor_ * factor;
    const bool deferred = std::abs(decayed) >= S(1) && std::abs(decayed) <= 2 * start;
    divisor_ = deferred ? decayed : start;
    return deferred ? S(1) : decayed / start;
  }
  /// The matrix is the stored matrix times this.
  S divisor() const { return divisor_; }

 private:
  S divisor_ = start;
};

/// sums[i] = a[i]·b[i] for vectors of n entries.
template <class S, int count>
EIGEN_ALWAYS_INLINE void dot_products(const S* const (&a)[count], const S* const (&b)[count],
                                      Index n, S* sums) {
  using One = Rows<S, 1>;
  One parts[count];
  for (One& part : parts) part = One::all(S(0));
  const Index whole = n / One::size * One::size;
  for (Index i = 0; i < whole; i += One::size)
    for (int j = 0; j < count; ++j) parts[j].add(One::load(a[j] + i), One::load(b[j] + i));
  for (int j = 0; j < count; ++j) sums[j] = parts[j].sum();
  for (Index i = whole; i < n; ++i)
    for (int j = 0; j < count; ++j) sums[j] += a[j][i] * b[j][i];
}

}  // namespace fw::detail
