#pragma once

#include <algorithm>
#include <fastweights/kernels/rule.hpp>
#include <limits>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// The writes of a sequence as corrections without reads; see Pairs. Values are those of the
/// tokens, or all are `value` if it is not null. M's corrections must depend on no state.
template <class M> class WriteCorrections {
 public:
  using S = typename M::Scalar;
  static constexpr Index batch = RuleCorrections<M, StateOf<M>>::batch;

  WriteCorrections(const M& m, const WriteSequence<M>& inputs, const S* value)
      : m_(m), inputs_(inputs), value_(value), steps_(steps_of(inputs, m.signature().write())) {
    const auto W = m.state_extents().W;
    buffer_size_ = buffer_size<M>(W.width, W.rows);
    if (buffer_size_ > 0) buffer_ = thread_buffer<S, WriteCorrections>(2 * batch * buffer_size_);
  }
  static constexpr UpdateOrder order() { return order_of<M>(); }
  Index size() const { return steps_ * per_token; }
  Correction<S> get(Index i, Index slot) const {
    const auto token = token_at<WriteToken<M>>(inputs_, m_.signature().write(), i / per_token);
    auto none = m_.state_extents();  // the state is not used
    auto c = correction_of(m_, none, token, ReadToken<M>{token.key.col(0)},
                           static_cast<S*>(nullptr), i % per_token, buffer_ + slot * buffer_size_);
    if (value_ != nullptr) c.value = value_;
    return c;
  }
  void list_prefetches(Prefetches<S>&, Index) const {}

 private:
  static constexpr Index per_token = corrections_per_token<M>();

  const M& m_;
  const WriteSequence<M>& inputs_;
  const S* value_;
  Index steps_, buffer_size_ = 0;
  S* buffer_ = nullptr;
};

/// W takes the writes of a sequence.
template <class M, class Matrix>
void write_sequence(const M& m, Matrix& W, const WriteSequence<M>& inputs,
                    const typename M::Scalar* value = nullptr) {
  constexpr auto products =
      products_of<M>() == Products::removal ? Products::removal : Products::lookups;
  scan_pairs<M::decay_kind, products>(W, static_cast<typename M::Scalar*>(nullptr),
                                      WriteCorrections<M>(m, inputs, value));
}

/// Entries below the smallest normal number become 0. Some processors multiply these slowly.
template <class Matrix> void flush_subnormal(Matrix& A) {
  using S = typename Matrix::Scalar;
  A = (A.array().abs() < std::numeric_limits<S>::min()).select(S(0), A);
}

/// Appends the writes of a sequence to a segment W ← W A + B of a rule with one β per token. A
/// correction does not mix the rows of W. So B takes the writes as any W does, and A takes the same
/// writes with values of 0. A fades as the rule forgets; once it is 0, only B is left.
template <class M, class MatrixA, class MatrixB>
void extend_segment(const M& m, MatrixA& A, MatrixB& B, const WriteSequence<M>& inputs) {
  using S = typename M::Scalar;
  struct Zeros;
  constexpr Index block = 512;
  const auto extents = m.signature().write();
  const Index total = steps_of(inputs, extents);
  S* const zeros = thread_buffer<S, Zeros>(A.rows());
  std::fill_n(zeros, A.rows(), S(0));
  for (Index t = 0; t < total; t += block) {
    const auto part = steps(inputs, extents, t, std::min(block, total - t));
    write_sequence(m, B, part);
    if (A.isZero(0)) continue;
    write_sequence(m, A, part, zeros);
    flush_subnormal(A);
  }
}

}  // namespace fw::detail
