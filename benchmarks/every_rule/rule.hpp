#pragma once

#include <cmath>
#include <fastweights/algorithms/backward.hpp>
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

/// The time of a backward pass after a forward pass that stored its trace.
template <class M, class Prepare>
double backward_seconds(const M& m, Index heads, Index length, const Prepare& prepare) {
  std::vector<Head<M>> all(static_cast<std::size_t>(heads), random_head(m, length, prepare));
  std::vector<Head<M>> gradients = all;
  std::vector<fw::Checkpoints<M>> checkpoints(all.size());
  const auto run = [&](std::size_t h) {
    auto& [inputs, queries, outputs] = all[h].tokens;
    auto& gradient = gradients[h];
    fw::backward(m, checkpoints[h], fw::view<fw::WriteSequence<M>>(inputs),
                 fw::view<fw::ReadSequence<M>>(queries), fw::view<fw::OutGradSequence<M>>(outputs),
                 gradient.state, fw::view<fw::WriteGradSequence<M>>(gradient.tokens.inputs),
                 fw::view<fw::ReadGradSequence<M>>(gradient.tokens.queries));
  };
  for (std::size_t h = 0; h < all.size(); ++h) {
    auto& [inputs, queries, outputs] = all[h].tokens;
    fw::scan(m, all[h].state, fw::view<fw::WriteSequence<M>>(inputs),
             fw::view<fw::ReadSequence<M>>(queries), fw::view<fw::OutSequence<M>>(outputs),
             checkpoints[h]);
  }
  run(0);  // allocates buffers
  const double start = machine::processor_clock();
  for (std::size_t h = 0; h < all.size(); ++h) run(h);
  return machine::processor_clock() - start;
}

template <class M, class Prepare = decltype(as_it_is)>
Rule rule(std::string name, const M& m, Flops flops, const Prepare& prepare = as_it_is) {
  Rule made{
      std::move(name),
      std::move(flops),
      [m, prepare](Index heads, Index length) { return scan_seconds(m, heads, length, prepare); },
      {}};
  if constexpr (fw::CustomBackward<M> || fw::TracedBackward<M>)
    made.backward_seconds = [m, prepare](Index heads, Index length) {
      return backward_seconds(m, heads, length, prepare);
    };
  return made;
}

}  // namespace every_rule
