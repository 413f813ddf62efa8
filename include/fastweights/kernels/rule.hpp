#pragma once

#include <fastweights/core/check.hpp>
#include <fastweights/core/memory.hpp>
#include <fastweights/kernels/decode/step.hpp>
#include <fastweights/kernels/scan/scan.hpp>

/// \file
/// A rule's step and scan by the kernels. The rule has a matrix W in its state, and
///
///     static constexpr DecayKind decay_kind;  // how W decays
///     static constexpr bool has_delta_term;   // whether a write subtracts what its key retrieves
///     TokenCoefficients<S> coefficients(State&, const WriteToken&, const ReadToken&) const;
///
/// called for every token in order; it may update what the state has beside W.
/// Its state is any that has what the rule's own has beside W, of which it knows nothing.
/// What its tokens have of `key`, `value`, `beta`, `decay`, `query` and `output` is read from them.

namespace fw::detail {

/// Whether a member of a token has an entry a row, or is one number.
template <class Member>
inline constexpr bool is_per_row = requires(const std::remove_reference_t<Member>& m) {
  m.data();
};
/// Whether a token of a signature has one decay.
template <class Signature, class S>
inline constexpr bool one_decay = !is_per_row<
    decltype(std::declval<typename Signature::template Write<Token<const S>>&>().decay)>;

/// Scalars that have kernels; the others go the generic way.
template <class S>
concept KernelScalar = std::is_same_v<S, float> || std::is_same_v<S, double>;

inline namespace FASTWEIGHTS_KERNELS {

template <class View> auto columns_of(const View& view) {
  using S = std::remove_reference_t<decltype(*std::declval<View&>().data())>;
  return Columns<S>{const_cast<S*>(view.data()), view.colStride()};
}

/// Of one token or a sequence of them. A β or a decay that is one number a token is in its weights.
template <class M, class Write, class Read, class Out>
Tokens<typename M::Scalar> tokens_of(const Write& in, const Read& reads, const Out& out) {
  Tokens<typename M::Scalar> tokens{columns_of(in.key), columns_of(in.value),
                                    columns_of(reads.query), columns_of(out.output)};
  using Given = WriteToken<M>;
  if constexpr (requires(const Given& t) { t.beta.data(); }) tokens.beta = columns_of(in.beta);
  if constexpr (requires(const Given& t) { t.decay.data(); }) tokens.fades = columns_of(in.decay);
  return tokens;
}

template <class M>
EIGEN_ALWAYS_INLINE void step_by_kernel(const M& m, StateOf<M>& s, const WriteToken<M>& in,
                                        const ReadToken<M>& reads, OutToken<M>& out) {
  if (has_step<typename M::Scalar>(s.W.rows())) {
    step_token<M::decay_kind, M::has_delta_term>(s.W, tokens_of<M>(in, reads, out),
                                                 m.coefficients(s, in, reads));
  } else {
    m.write(s, in);
    m.read(s, reads, out);
  }
}

template <class M, class With>
void scan_by_kernel(const M& m, With& s, const WriteSequence<M>& in, const ReadSequence<M>& reads,
                    OutSequence<M>& out, Columns<typename M::Scalar> errors = {}) {
  const auto signature = m.signature();
  auto tokens = tokens_of<M>(in, reads, out);
  tokens.errors = errors;
  scan_pairs<M::decay_kind, M::has_delta_term>(s.W, tokens, in.key.cols(), [&](Index t) {
    return m.coefficients(s, token_at<WriteToken<M>>(in, signature.write(), t),
                          token_at<ReadToken<M>>(reads, signature.read(), t));
  });
}

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
