// A step of several streams at once: see algorithms/streams.hpp.

#include <fastweights/algorithms/streams.hpp>
#include <fastweights/memories/adaptors/deferred.hpp>
#include <fastweights/memories/attention/key_value_cache.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>

#include "support/laws.hpp"

namespace {

using fw::Index;

template <class M> void equals_single_steps(const M& m, bool positive = false) {
  constexpr Index streams = 5;
  fw::Random random(3);
  std::vector<fw::StateOf<M>> states(streams, fw::initial_state(m)), alone = states;
  for (int t = 0; t < 12; ++t)
    for (const bool parallel : {false, true}) {
      auto all = fw::testing::random_sequences(m, streams, random, positive);
      auto each = all;
      fw::step(m, std::span(states), fw::view<fw::WriteSequence<M>>(all.inputs),
               fw::view<fw::ReadSequence<M>>(all.queries),
               fw::view<fw::OutSequence<M>>(all.outputs), parallel);
      for (Index b = 0; b < streams; ++b) {
        const auto [input, query, output] = laws::tokens(m, each, b);
        fw::step(m, alone[std::size_t(b)], input, query, output);
      }
      CHECK(laws::difference(all.outputs, each.outputs) == 0);
    }
  for (Index b = 0; b < streams; ++b)
    CHECK(laws::difference(states[std::size_t(b)], alone[std::size_t(b)]) == 0);
}

TEST_CASE("a step of several streams is a step of each", "[streams]") {
  for (const Index d : {1, 3, 17, 64}) {
    equals_single_steps(fw::DeltaRule<double>({.key_size = d}));
    equals_single_steps(fw::GatedDeltaRule<float>({.key_size = d, .value_size = 5}));
    equals_single_steps(
        fw::LinearAttention<double, fw::Dynamic, fw::Dynamic, fw::AttentionNormaliser<double>>(
            {.key_size = d}),
        true);
    equals_single_steps(fw::Deferred(fw::DeltaRule<double>({.key_size = d})));
    equals_single_steps(fw::KeyValueCache<double>({.key_size = d}, {4}));
  }
}

TEST_CASE("a step of several streams that is refused changes no state", "[streams]") {
  using M = fw::KeyValueCache<double>;
  const M m({.key_size = 2}, {.capacity = 1, .when_full = fw::WhenFull::refuse});
  std::vector<fw::StateOf<M>> states(2, fw::initial_state(m));
  const Eigen::MatrixXd ones = Eigen::MatrixXd::Ones(2, 2), three = Eigen::MatrixXd::Ones(2, 3);
  Eigen::MatrixXd y(2, 2), long_y(2, 3);
  const Eigen::VectorXd one = ones.col(0);
  fw::write(m, states[1], {one, one});
  const auto before = states;
  CHECK_THROWS_AS(fw::step(m, std::span(states), {ones, ones}, {ones}, {y}), std::length_error);
  CHECK_THROWS_WITH(fw::step(m, std::span(states), {three, three}, {three}, {long_y}),
                    "KeyValueCache: step: the inputs has 3 columns, the states expects 2");
  CHECK_THROWS_AS(fw::step(m, std::span(states), {ones, ones}, {three}, {y}),
                  std::invalid_argument);
  CHECK_THROWS_AS(fw::step(m, std::span(states), {ones, ones}, {ones}, {long_y}),
                  std::invalid_argument);
  CHECK(laws::difference(states[0], before[0]) == 0);
  CHECK(laws::difference(states[1], before[1]) == 0);
}

}  // namespace
