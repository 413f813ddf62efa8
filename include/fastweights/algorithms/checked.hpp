#pragma once

#include <fastweights/algorithms/scan.hpp>
#include <fastweights/core/stability.hpp>

/// \file
/// Steps and scans that refuse bad tokens, for inputs that nobody else has checked. A NaN that is
/// written stays in a matrix for good, and an unstable write grows without a limit.
///
///     fw::checked_step(memory, state, {k, v, beta}, {q}, {y});
///     fw::checked_scan(memory, state, {K, V, beta}, {Q}, {Y});
///
/// They throw std::invalid_argument for a token that is not finite, too large, out of the range of
/// its role, or unstable by the rule's own condition (core/stability.hpp). The message names the
/// rule, the member and, in a scan, the token: "GatedDeltaRule: token 17: decay is -1, expected 0
/// to 1". All tokens are checked before the first write: state and outputs are unchanged, to the
/// bit. The tests also hold under -ffast-math. Without the checks, a step, a write and a read, and
/// a scan agree about which numbers a NaN makes NaN.
///
/// If a read divides by what the state has, the state decides too: in MesaMemory with the exact
/// solver, a ridge that is too small for keys which span fewer than d_k dimensions is refused.
///
/// Tokens that pass keep a finite state finite, for at least 2^26 of them of any allowed size and,
/// in HebbianMemory, η up to 4. Outputs, which are not checked, may overflow for entries near the
/// largest. In some rules a single token does not decide whether the state stays finite:
///
/// - It depends on the state in DeltaRule with a normaliser, SelfReferentialMatrix, SelectiveScan,
///   Moneta and the learners with hidden layers or without a normalised objective. Only ranges are
///   checked.
/// - Different tokens in turns can grow what each token alone does not: in Comba, QDelta,
///   MomentumDeltaRule, LowRankRule and GatedDeltaRule2, whose look-up keys are not their write
///   keys, in TitansMemory with changing rates, and in OmegaMemory, whose window has other keys.
///   What is checked is a token that repeats; in the first four only ranges.
///
/// Cost: one pass over the inputs, and one more over the keys of delta rules; no heap. With
/// FeatureMapped, keys are mapped twice. MesaMemory copies and updates G once more, and where the
/// ridge is small eliminates it once more.

namespace fw::inline FASTWEIGHTS_ABI {

namespace detail {

// `Sequence`: a record of sequences, not of one token.
template <Memory M, bool Sequence, class R, class E>
EIGEN_ALWAYS_INLINE void check_ranges(const R& record, const E& extents) {
  using S = typename M::Scalar;
  static_assert(scalar_kind<S>() != ScalarKind::other,
                "fastweights: checked steps and scans take float, double or complex<double>");
  std::size_t i = 0;
  for_each_member(
      [&](std::string_view name, const auto& member, const MemberExtent& extent) {
        CheckedMember checked{M::name, name, entries_of(member), largest_input<S>()};
        checked.key_bounds_strength = key_bounds_strength<M>();
        if constexpr (requires { R::roles.size(); }) checked.role = &R::roles[i++];
        if (Sequence) checked.width = per_token(extent).width;
        check_entries(checked);
      },
      record, extents);
}

template <Memory M> void check_tokens(const M& m, const WriteToken<M>& input) {
  check_ranges<M, false>(input, m.signature().write());
  if constexpr (StabilityCondition<M>)
    if (const Violation v = m.violation(input)) throw_violation(M::name, v, -1);
}

// Condition of the state for tokens that are in range.
template <Memory M>
void check_trial([[maybe_unused]] const M& m, [[maybe_unused]] const StateOf<M>& state,
                 [[maybe_unused]] const WriteToken<M>& input) {
  if constexpr (StateCondition<M>)
    m.with_trial(state, [&](auto&& trial) {
      if (const Violation v = trial(input)) throw_violation(M::name, v, -1);
    });
}
template <Memory M>
void check_trial([[maybe_unused]] const M& m, [[maybe_unused]] const StateOf<M>& state,
                 [[maybe_unused]] const WriteSequence<M>& inputs, [[maybe_unused]] Index steps) {
  if constexpr (StateCondition<M>)
    m.with_trial(state, [&](auto&& trial) {
      const auto extents = m.signature().write();
      for (Index t = 0; t < steps; ++t)
        if (const Violation v = trial(token_at<WriteToken<M>>(inputs, extents, t)))
          throw_violation(M::name, v, t);
    });
}

template <Memory M> void check_tokens(const M& m, const WriteSequence<M>& inputs, Index steps) {
  const auto extents = m.signature().write();
  check_ranges<M, true>(inputs, extents);
  if constexpr (StabilityCondition<M>)
    for (Index t = 0; t < steps; ++t)
      if (const Violation v = m.violation(token_at<WriteToken<M>>(inputs, extents, t)))
        throw_violation(M::name, v, t);
}

}  // namespace detail

/// Throws as checked_scan does, and runs nothing: for use before chunked_scan, parallel_scan or a
/// scan with checkpoints.
template <Memory M>
void check_tokens(const M& m, WriteSequence<M> inputs, ReadSequence<M> queries) {
  const auto signature = m.signature();
  const Index steps = detail::steps_of(inputs, signature.write());
  detail::check_sequence(M::name, inputs, signature.write(), steps);
  detail::check_sequence(M::name, queries, signature.read(), steps);
  detail::check_tokens(m, inputs, steps);
  detail::check_ranges<M, true>(queries, signature.read());
}

/// As fw::write, for a checked token.
template <Memory M> void checked_write(const M& m, StateOf<M>& state, WriteToken<M> input) {
  detail::check_write(m, state, input);
  detail::check_outside(M::name, state, detail::NoViews{}, input);
  detail::check_tokens(m, input);
  detail::check_trial(m, state, input);
  detail::run_write(m, state, input);
}

/// As fw::step, for a checked token and query.
template <Memory M>
void checked_step(const M& m, StateOf<M>& state, WriteToken<M> input, ReadToken<M> query,
                  OutToken<M> output) {
  detail::check_step(m, state, input, query, output);
  detail::check_outside(M::name, state, output, query, input);
  detail::check_tokens(m, input);
  detail::check_ranges<M, false>(query, m.signature().read());
  detail::check_trial(m, state, input);
  detail::run_step(m, state, input, query, output);
}

/// As fw::scan, for checked tokens and queries.
template <Memory M>
void checked_scan(const M& m, StateOf<M>& state, WriteSequence<M> inputs, ReadSequence<M> queries,
                  OutSequence<M> outputs) {
  const Index steps = detail::steps_of(inputs, m.signature().write());
  detail::check_scan(m, state, inputs, queries, steps);
  detail::check_outputs<M, true>(m, state, inputs, queries, outputs, steps);
  detail::check_tokens(m, inputs, steps);
  detail::check_ranges<M, true>(queries, m.signature().read());
  detail::check_trial(m, state, inputs, steps);
  detail::run_scan(m, state, inputs, queries, outputs, steps);
}

}  // namespace fw
