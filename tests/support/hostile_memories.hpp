#pragma once

#include <fastweights/algorithms/backward.hpp>
#include <fastweights/algorithms/checked.hpp>
#include <fastweights/algorithms/scan.hpp>
#include <fastweights/testing/sequences.hpp>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/hostile_states.hpp"

namespace hostile {

/// Every public call with a state, each with a copy of it.
template <class M, class Sequences>
void use_state(const M& m, fw::StateOf<M>& state, Sequences& all, Sequences& gradients) {
  const auto inputs = fw::view<fw::WriteSequence<M>>(all.inputs);
  const auto queries = fw::view<fw::ReadSequence<M>>(all.queries);
  const auto outputs = fw::view<fw::OutSequence<M>>(all.outputs);
  const auto sizes = m.signature();
  const auto token = fw::detail::token_at<fw::WriteToken<M>>(inputs, sizes.write(), 0);
  const auto query = fw::detail::token_at<fw::ReadToken<M>>(queries, sizes.read(), 0);
  const auto output = fw::detail::token_at<fw::OutToken<M>>(outputs, sizes.out(), 0);
  const auto each = [&](const auto& call) {
    auto copy = state;
    call(copy);
    return copy;
  };
  each([&](auto& s) { fw::read(m, s, query, output); });
  each([&](auto& s) { fw::write(m, s, token); });
  each([&](auto& s) { fw::step(m, s, token, query, output); });
  if constexpr (fw::Chunkable<M>)
    each([&](auto& s) { fw::chunked_scan(m, s, inputs, queries, outputs); });
  if constexpr (fw::Differentiable<M>) {
    fw::Checkpoints<M> checkpoints;
    each([&](auto& s) { fw::scan(m, s, inputs, queries, outputs, checkpoints); });
    auto ds = fw::zero_gradient(m);
    fw::backward(m, state, inputs, queries, fw::view<fw::OutGradSequence<M>>(gradients.outputs), ds,
                 fw::view<fw::WriteGradSequence<M>>(gradients.inputs),
                 fw::view<fw::ReadGradSequence<M>>(gradients.queries));
  }
  state = each([&](auto& s) { fw::scan(m, s, inputs, queries, outputs); });
}

/// Tries the counters of a state after four random tokens.
template <class M>
void refuses_hostile_states(const M& m, const std::vector<std::string>& free_counters = {}) {
  INFO(M::name);
  fw::Random random(1);
  auto all = fw::testing::random_sequences(m, 3, random, true), gradients = all;
  auto state = fw::testing::random_state(m, 4, random, true);
  const auto use = [&](auto& s) { use_state(m, s, all, gradients); };
  try_counters(subject(m, state, use), free_counters);
  // Checked calls look at the state themselves, and may refuse these tokens.
  if constexpr (requires { fw::WriteToken<M>::roles; }) {
    const auto token = fw::detail::token_at<fw::WriteToken<M>>(
        fw::view<fw::WriteSequence<M>>(all.inputs), m.signature().write(), 0);
    const auto write = [&](auto& s) { fw::checked_write(m, s, token); };
    try_counters(subject(m, state, write), free_counters);
  }
}

}  // namespace hostile
