#pragma once

#include <fastweights/kernels/scan/scan.hpp>

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

/// Appends `steps` writes to a segment W ← W A + B of a delta rule with one β per token. A write
/// does not mix the rows of W, W ← W D (I − β k kᵀ) + β v kᵀ. So B takes the writes as any W does,
/// and A takes the same writes with values of 0.
template <DecayKind decay_kind, class MatrixA, class MatrixB, class S, class Coefficients>
void extend_segment(MatrixA& A, MatrixB& B, Tokens<S> tokens, Index steps,
                    const Coefficients& coefficients) {
  struct Zeros;
  write_pairs<decay_kind>(B, tokens, steps, coefficients);
  S* const zeros = thread_buffer<S, Zeros>(A.rows());
  std::fill_n(zeros, A.rows(), S(0));
  tokens.value = {zeros, 0};
  write_pairs<decay_kind>(A, tokens, steps, coefficients);
}

}  // namespace fw::detail
