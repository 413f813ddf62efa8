#pragma once

#include <cmath>
#include <fastweights/kernels/simd/prefetch.hpp>

namespace fw::detail {
inline namespace FASTWEIGHTS_KERNELS {

/// What a rule multiplies the parts of a token by, β being one number or one a value row:
///
///     W̄ = fade W,   e = β ∘ (value v − retrieved W̄ k),   W = W̄ + e kᵀ,   y = read W q
template <class S> struct TokenCoefficients {
  S value = S(1), retrieved = S(1), beta = S(1), read = S(1), fade = S(1);
};

/// Where the columns of a sequence lie, one a token.
template <class S> struct Columns {
  S* data = nullptr;
  Index stride = 0;
  EIGEN_ALWAYS_INLINE S* operator()(Index t) const {
    return data == nullptr ? nullptr : data + t * stride;
  }
  operator Columns<const S>() const { return {data, stride}; }
  Columns from(Index t) const { return {(*this)(t), stride}; }
};

/// The sequence of one head: d_k rows of keys, queries and fades, d_v of values, betas, outputs
/// and errors. Null where a rule has no betas or no fades by the row, or nobody asks for errors.
template <class S> struct Tokens {
  Columns<const S> key, value, query;
  Columns<S> output;
  Columns<const S> beta = {}, fades = {};
  Columns<S> errors = {};
};

/// Two tokens, made ready to be read with one state, W before both; with P x = W x,
///
///     e_1 = β_1 ∘ (value_1 v_1 − retrieved_1 P k_1)
///     e_2 = β_2 ∘ (value_2 v_2 − retrieved_2 P k_2 − earlier e_1)
///     y_1 = read_1 P q_1 + own_1 e_1
///     y_2 = read_2 P q_2 + own_2 e_2 + cross e_1
///     W ← fade W + written_1 e_1 k_1ᵀ + written_2 e_2 k_2ᵀ
///
/// Where columns fade, keys and queries have the fading multiplied in.
template <class S> struct Pair {
  struct One {
    const S *lookup_key, *query, *key;  // k to retrieve by, q, k to write by
    const S *values, *betas;            // the latter null where it is a number
    S *output, *error;                  // null for none; v − W̄ k goes to the latter
    S value = S(1), retrieved = S(1), beta = S(1), read = S(1), own = S(0), written = S(1);
  };
  One one, two;
  const S* fades = nullptr;  // of the columns
  S earlier, cross, fade;
  S carried[4];  // k_1·q_1, k_2·q_1, k_1·q_2, k_2·q_2 of the keys of the pair before
  Prefetches<S> prefetches;
};

/// Whether a matrix may still be kept as it is over `past`.
template <class S> bool is_kept(S past) {
  constexpr S least = S(1) / S(1 << 20);
  return std::abs(past) >= least && std::abs(past) <= S(1) / least;
}

/// sums[i] = a[i]·b[i], of n entries each.
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

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
