#pragma once

#include <fastweights/core/check.hpp>
#include <fastweights/core/memory.hpp>
#include <fastweights/kernels/decode/step.hpp>
#include <fastweights/kernels/scan/scan.hpp>

/// \file
/// A rule's step and scan by the kernels. The rule has a matrix W in its state, and these members:
///
///     static constexpr DecayKind decay_kind;  // how W decays
///     static constexpr bool has_delta_term;   // whether a write subtracts the retrieved value
///     // With DecayKind::compensated, the state has a matrix sum.errors besides W.
///     TokenCoefficients<S> coefficients(State&, const WriteToken&, const ReadToken&) const;
///
/// The kernels call `coefficients` for every token in order. It must not use W, but may update the
/// other members of the state, and must accept any state type that has these members. The kernels
/// use the members `key`, `value`, `beta`, `decay`, `query` and `output` of the tokens, if present.

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// Whether a member of a token has one entry per row; otherwise it is one number.
template <class Member>
inline constexpr bool is_per_row = requires(const std::remove_reference_t<Member>& m) {
  m.data();
};
/// Whether a signature has one decay per token.
template <class Signature, class S>
inline constexpr bool one_decay = !is_per_row<
    decltype(std::declval<typename Signature::template Write<Token<const S>>&>().decay)>;

/// Scalars with kernels; other scalars use the generic algorithms.
template <class S>
concept KernelScalar = std::is_same_v<S, float> || std::is_same_v<S, double>;

template <class View> auto columns_of(const View& view) {
  using S = std::remove_reference_t<decltype(*std::declval<View&>().data())>;
  return Columns<S>{const_cast<S*>(view.data()), view.colStride()};
}

/// The rounding errors of a compensated W, `s.sum.errors`, or null.
template <class S, class State> S* rounding_errors_of([[maybe_unused]] State& s) {
  if constexpr (requires { s.sum.errors; }) return s.sum.errors.data();
  return nullptr;
}

/// Converts a token or a sequence for the kernels. β or a decay with one number per token is part
/// of the coefficients instead.
template <class M, class Write, class Read, class Out>
Tokens<typename M::Scalar> tokens_of(const Write& inputs, const Read& queries, const Out& out) {
  Tokens<typename M::Scalar> tokens{columns_of(inputs.key), columns_of(inputs.value),
                                    columns_of(queries.query), columns_of(out.output)};
  using Given = WriteToken<M>;
  if constexpr (requires(const Given& t) { t.beta.data(); }) tokens.beta = columns_of(inputs.beta);
  if constexpr (requires(const Given& t) { t.decay.data(); })
    tokens.decays = columns_of(inputs.decay);
  return tokens;
}

/// Whether W has so few rows, known at compile time, that Eigen's expressions are faster than the
/// kernels.
template <class M>
inline constexpr bool is_tiny = decltype(StateOf<M>::W)::RowsAtCompileTime !=
                                Dynamic&& decltype(StateOf<M>::W)::RowsAtCompileTime < 4;

/// Also writes the delta rule's error, unless `error` is null.
template <class M, class State>
EIGEN_ALWAYS_INLINE void step_by_kernel(const M& m, State& s, const WriteToken<M>& input,
                                        const ReadToken<M>& query, const OutToken<M>& out,
                                        typename M::Scalar* error = nullptr) {
  if constexpr (is_tiny<M> && std::is_same_v<State, StateOf<M>>)
    if (error == nullptr) {
      m.write(s, input);
      return m.read(s, query, out);
    }
  auto tokens = tokens_of<M>(input, query, out);
  tokens.errors = {error, 0};
  step_token<M::decay_kind, M::has_delta_term>(s.W, rounding_errors_of<typename M::Scalar>(s),
                                               tokens, m.coefficients(s, input, query));
}

/// Whether a scan is faster token by token than in pairs: W has less than two packets of rows, and
/// pairs would need padding.
template <class S> bool scans_by_steps(Index rows) {
  return rows < 2 * lanes<S> && rows % lanes<S> != 0;
}

template <class M, class State>
void scan_by_kernel(const M& m, State& s, const WriteSequence<M>& inputs,
                    const ReadSequence<M>& queries, OutSequence<M>& out,
                    Columns<typename M::Scalar> errors = {}) {
  const auto signature = m.signature();
  const auto written = signature.write();
  const auto read = signature.read();
  const Index steps = inputs.key.cols();
  const auto run = [&](State& state, const auto& error_at) FASTWEIGHTS_INLINE_LAMBDA {
    for (Index t = 0; t < steps; ++t)
      step_by_kernel(m, state, token_at<WriteToken<M>>(inputs, written, t),
                     token_at<ReadToken<M>>(queries, read, t),
                     token_at<OutToken<M>>(out, signature.out(), t), error_at(t));
  };
  if constexpr (is_small<decltype(s.W)>()) {
    if (errors.data == nullptr) {
      // A copy that nothing else points to, so that W may stay in registers.
      State state = s;
      run(state, [](Index) FASTWEIGHTS_INLINE_LAMBDA -> typename M::Scalar* { return nullptr; });
      s = state;
      return;
    }
  }
  if (scans_by_steps<typename M::Scalar>(s.W.rows())) return run(s, errors);
  auto tokens = tokens_of<M>(inputs, queries, out);
  tokens.errors = errors;
  scan_pairs<M::decay_kind, M::has_delta_term>(
      s.W, rounding_errors_of<typename M::Scalar>(s), tokens, steps, [&](Index t) {
        return m.coefficients(s, token_at<WriteToken<M>>(inputs, written, t),
                              token_at<ReadToken<M>>(queries, read, t));
      });
}

}  // namespace fw::detail
