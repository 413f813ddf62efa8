#pragma once

#include <cmath>
#include <fastweights/algorithms/scan.hpp>
#include <fastweights/testing/sequences.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "every_rule/rules.hpp"
#include "machine.hpp"

/// \file
/// Makes a Rule of any memory: `rule(name, memory, flops)`. Its tokens are random by their roles:
/// keys of length 1, decays in [0.9, 1), strengths in (0.05, 1), values in (0.05, 1). A fourth
/// argument `prepare(inputs, state)` changes them for a rule that is not stable with these.

namespace every_rule {

template <class M> struct Head {
  fw::StateOf<M> state;
  fw::testing::Sequences<M> tokens;
};

inline constexpr auto as_it_is = [](auto&, auto&) {};

template <class R> void set_by_roles([[maybe_unused]] R& record) {
  if constexpr (R::roles.size() > 0) {
    std::size_t i = 0;
    fw::for_each_member(
        [&](std::string_view, auto& array) {
          const fw::Role role = R::roles[i++];
          if (role == fw::Role::key) array.colwise().normalize();
          if (role == fw::Role::decay) array.array() = 0.8f + 0.2f * array.array();
        },
        record);
  }
}

/// A model that is trained starts from random weights.
template <class State> void start([[maybe_unused]] State& state, fw::Random& random) {
  if constexpr (requires { state.weights; })
    fw::for_each_leaf(
        [&](auto& leaf) { random.fill(leaf, 1 / std::sqrt(static_cast<double>(leaf.cols()))); },
        state.weights);
}

template <class M, class Prepare>
Head<M> random_head(const M& m, Index length, const Prepare& prepare) {
  fw::Random random(1);
  Head<M> head{fw::initial_state(m),
               fw::testing::random_sequences(m, length, random, /*positive=*/true)};
  set_by_roles(head.tokens.inputs);
  set_by_roles(head.tokens.queries);
  start(head.state, random);
  prepare(head.tokens.inputs, head.state);
  return head;
}

template <class M> void scan(const M& m, Head<M>& head) {
  auto& [inputs, queries, outputs] = head.tokens;
  fw::scan(m, head.state, fw::view<fw::WriteSequence<M>>(inputs),
           fw::view<fw::ReadSequence<M>>(queries), fw::view<fw::OutSequence<M>>(outputs));
}

/// Throws std::runtime_error if the numbers overflow, as the time would be of no use.
template <class M, class Prepare>
double scan_seconds(const M& m, Index heads, Index length, const Prepare& prepare) {
  std::vector<Head<M>> all(static_cast<std::size_t>(heads), random_head(m, length, prepare));
  const double start = machine::processor_clock();
  for (Head<M>& head : all) scan(m, head);
  const double seconds = machine::processor_clock() - start;
  if (!all.back().tokens.outputs.output.allFinite())
    throw std::runtime_error("the outputs are not finite");
  return seconds;
}

template <class M, class Prepare = decltype(as_it_is)>
Rule rule(std::string name, const M& m, Flops flops, const Prepare& prepare = as_it_is) {
  return {std::move(name), std::move(flops), [m, prepare](Index heads, Index length) {
            return scan_seconds(m, heads, length, prepare);
          }};
}

}  // namespace every_rule
