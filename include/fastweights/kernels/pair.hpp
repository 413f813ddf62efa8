#pragma once

#include <fastweights/kernels/packet.hpp>

namespace fw::detail {
inline namespace FASTWEIGHTS_KERNELS {

/// How a rule lets the past fade before a write: not, all of it alike, each column by itself.
enum class Fade { none, all, columns };

/// What a rule multiplies the parts of a token by, β being one number or one a value row:
///
///     W̄ = fade W,   e = β ∘ (value v − retrieved W̄ k),   W = W̄ + e kᵀ,   y = read W q
template <class S> struct TokenWeights {
  S value = S(1), retrieved = S(1), beta = S(1), read = S(1), fade = S(1);
};

/// Where the columns of a sequence lie, one a token.
template <class S> struct Columns {
  S* data = nullptr;
  Index stride = 0;
  EIGEN_ALWAYS_INLINE S* operator()(Index t) const {
    return data == nullptr ? nullptr : data + t * stride;
  }
};

/// The sequence of one head: d_k rows of keys, queries and fades, d_v of values, betas and outputs.
/// Null where a rule has no betas or no fades by the row.
template <class S> struct Tokens {
  Columns<const S> key, value, query;
  Columns<S> output;
  Columns<const S> beta = {}, fades = {};
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
    const S *looked_up, *asked, *key;  // k to retrieve by, q, k to write by
    const S *values, *betas;           // the latter null where it is a number
    S* output;                         // null for none
    S value = S(1), retrieved = S(1), beta = S(1), read = S(1), own = S(0), written = S(1);
  };
  One one, two;
  const S* fades;  // of the columns
  S earlier, cross, fade;
};

/// The products of keys and queries that two tokens read at once have to make up for.
template <class S> struct Met {
  S earlier, own1, cross, own2;  // k_1·k_2, k_1·q_1, k_1·q_2, k_2·q_2
};

/// `left` is k_1 with what fades before k_2 multiplied in.
template <class S>
EIGEN_ALWAYS_INLINE Met<S> met(const S* left, const S* k1, const S* q1, const S* k2, const S* q2,
                               Index n) {
  using One = Rows<S, 1>;
  One earlier = One::all(S(0)), own1 = earlier, cross = earlier, own2 = earlier;
  Index i = 0;
  for (; i + One::size <= n; i += One::size) {
    const One l = One::load(left + i), a = One::load(k2 + i), b = One::load(q2 + i);
    earlier.add(l, a);
    cross.add(l, b);
    own2.add(a, b);
    own1.add(One::load(k1 + i), One::load(q1 + i));
  }
  Met<S> sum{earlier.sum(), own1.sum(), cross.sum(), own2.sum()};
  for (; i < n; ++i) {
    sum.earlier += left[i] * k2[i];
    sum.own1 += k1[i] * q1[i];
    sum.cross += left[i] * q2[i];
    sum.own2 += k2[i] * q2[i];
  }
  return sum;
}

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
