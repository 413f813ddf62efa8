#pragma once

#include <fastweights/algorithms/checked.hpp>
#include <fastweights/testing/sequences.hpp>

#include "checks.hpp"

/// The steps, writes, reads and checked steps of a memory whose type is known.

/// Calls f(state, t) for every token of every pass.
template <class M, class F> Usage usage_of_passes(const M& m, const F& f) {
  auto state = fw::initial_state(m);
  return usage_of([&] {
    for (Index pass = 0; pass < pass_count; ++pass) {
      fw::set_zero(state);
      for (Index t = 0; t < sequence_length; ++t) f(state, t);
    }
  });
}

/// Counts them over all passes, and reports. Checked steps are left out for a memory that does not
/// accept any random tokens.
template <class M> void check(const M& m, const char* variant = "", bool accepts_all = true) {
  fw::Random random(1);
  auto all = fw::testing::random_sequences(m, sequence_length, random, /*positive=*/true);
  const auto sizes = m.signature();
  const auto in = fw::view<fw::WriteSequence<M>>(all.inputs);
  const auto queries = fw::view<fw::ReadSequence<M>>(all.queries);
  const auto out = fw::view<fw::OutSequence<M>>(all.outputs);
  const auto input = [&](Index t) {
    return fw::detail::token_at<fw::WriteToken<M>>(in, sizes.write(), t);
  };
  const auto query = [&](Index t) {
    return fw::detail::token_at<fw::ReadToken<M>>(queries, sizes.read(), t);
  };
  const auto output = [&](Index t) {
    return fw::detail::token_at<fw::OutToken<M>>(out, sizes.out(), t);
  };
  const Usage stepping = usage_of_passes(
      m, [&](auto& state, Index t) { fw::step(m, state, input(t), query(t), output(t)); });
  const Usage apart = usage_of_passes(m, [&](auto& state, Index t) {
    fw::write(m, state, input(t));
    fw::read(m, state, query(t), output(t));
  });
  const Usage checked = usage_of_passes(m, [&](auto& state, Index t) {
    if (accepts_all) fw::checked_step(m, state, input(t), query(t), output(t));
  });
  report(std::string(M::name) + " " + variant + " d_v " + std::to_string(sizes.dv), stepping, apart,
         checked);
}
