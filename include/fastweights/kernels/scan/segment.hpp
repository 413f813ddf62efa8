#pragma once

#include <algorithm>
#include <fastweights/kernels/scan/scan.hpp>
#include <limits>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// As scan_pairs with a delta term, without reads: the queries are the keys, and every output goes
/// to the same buffer.
template <DecayKind decay_kind, class Matrix, class S, class Coefficients>
void write_pairs(Matrix& W, Tokens<S> tokens, Index steps, const Coefficients& coefficients) {
  struct Outputs;
  tokens.query = tokens.key;
  tokens.output = {thread_buffer<S, Outputs>(W.rows()), 0};
  scan_pairs<decay_kind, true>(W, static_cast<S*>(nullptr), tokens, steps, coefficients);
}

/// Entries below the smallest normal number become 0. Some processors multiply these slowly.
template <class Matrix> void flush_subnormal(Matrix& A) {
  using S = typename Matrix::Scalar;
  A = (A.array().abs() < std::numeric_limits<S>::min()).select(S(0), A);
}

/// Appends `steps` writes to a segment W ← W A + B of a delta rule with one β per token. A write
/// does not mix the rows of W, W ← W D (I − β k kᵀ) + β v kᵀ. So B takes the writes as any W does,
/// and A takes the same writes with values of 0. A fades as the rule forgets; once it is 0, only B
/// is left.
template <DecayKind decay_kind, class MatrixA, class MatrixB, class S, class Coefficients>
void extend_segment(MatrixA& A, MatrixB& B, const Tokens<S>& tokens, Index steps,
                    const Coefficients& coefficients) {
  struct Zeros;
  constexpr Index block = 512;
  S* const zeros = thread_buffer<S, Zeros>(A.rows());
  std::fill_n(zeros, A.rows(), S(0));
  for (Index t = 0; t < steps; t += block) {
    const Index count = std::min(block, steps - t);
    const auto coefficient = [&](Index i) { return coefficients(t + i); };
    Tokens<S> part{tokens.key.from(t), tokens.value.from(t), {}, {}, {}, tokens.decays.from(t)};
    write_pairs<decay_kind>(B, part, count, coefficient);
    if (A.isZero(0)) continue;
    part.value = {zeros, 0};
    write_pairs<decay_kind>(A, part, count, coefficient);
    flush_subnormal(A);
  }
}

}  // namespace fw::detail
