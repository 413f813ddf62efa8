#pragma once

#include <fastweights/core/check.hpp>
#include <fastweights/core/memory.hpp>
#include <fastweights/kernels/scan.hpp>
#include <fastweights/kernels/step.hpp>

/// \file
/// A rule's step and scan by the kernels. The rule has a matrix W in its state, and
///
///     static constexpr Fade fading;    // how the past fades
///     static constexpr bool corrects;  // whether a write takes off what its key retrieves
///     TokenWeights<S> weigh(State&, const WriteToken&, const ReadToken&) const;
///
/// which is asked for the weights of every token in order, and may move on what else the state has.
/// Its state is any that has what the rule's own has beside W, of which it knows nothing.
/// What its tokens have of `key`, `value`, `beta`, `decay`, `query` and `output` is read from them.

namespace fw::detail {

/// Whether a member of a token has an entry a row, or is one number.
template <class Member>
inline constexpr bool by_the_row = requires(const std::remove_reference_t<Member>& m) {
  m.data();
};
/// Whether a token of a signature has one decay.
template <class Signature, class S>
inline constexpr bool one_decay = !by_the_row<
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
Tokens<typename M::Scalar> tokens_of(const Write& in, const Read& asked, const Out& out) {
  Tokens<typename M::Scalar> tokens{columns_of(in.key), columns_of(in.value),
                                    columns_of(asked.query), columns_of(out.output)};
  using Given = WriteToken<M>;
  if constexpr (requires(const Given& t) { t.beta.data(); }) tokens.beta = columns_of(in.beta);
  if constexpr (requires(const Given& t) { t.decay.data(); }) tokens.fades = columns_of(in.decay);
  return tokens;
}

template <class M>
EIGEN_ALWAYS_INLINE void step_by_kernel(const M& m, StateOf<M>& s, const WriteToken<M>& in,
                                        const ReadToken<M>& asked, OutToken<M>& out) {
  if (has_step<typename M::Scalar>(s.W.rows())) {
    step_token<M::fading, M::corrects>(s.W, tokens_of<M>(in, asked, out), m.weigh(s, in, asked));
  } else {
    m.write(s, in);
    m.read(s, asked, out);
  }
}

template <class M, class With>
void scan_by_kernel(const M& m, With& s, const WriteSequence<M>& in, const ReadSequence<M>& asked,
                    OutSequence<M>& out, Columns<typename M::Scalar> errors = {}) {
  const auto signature = m.signature();
  auto tokens = tokens_of<M>(in, asked, out);
  tokens.errors = errors;
  scan_pairs<M::fading, M::corrects>(s.W, tokens, in.key.cols(), [&](Index t) {
    return m.weigh(s, token_at<WriteToken<M>>(in, signature.write(), t),
                   token_at<ReadToken<M>>(asked, signature.read(), t));
  });
}

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
