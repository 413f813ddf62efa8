// A step of several streams at once, of a memory by name and of one whose type is known: see
// any_memory/streams.hpp and algorithms/streams.hpp.

#include <fastweights/algorithms/streams.hpp>
#include <fastweights/memories/adaptors/deferred.hpp>
#include <fastweights/memories/attention/key_value_cache.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>

#include "support/catch.hpp"
#include "support/largest_entry.hpp"
#include "support/sizes.hpp"
#include "support/subject.hpp"

namespace {

using Eigen::MatrixXd;
using fw::Index;
using laws::difference;
using laws::Subject;

constexpr Index streams = 5;

template <class S> struct Streams {
  explicit Streams(const Subject& s)
      : memory(s.memory<S>()), states(streams, laws::first_state<S>(s)), positive(s.positive()) {}

  // One token of each stream.
  auto token() { return fw::testing::random_sequences(memory, streams, random, positive); }
  auto step(fw::testing::AnySequences<S>& all, bool parallel) {
    memory.step(std::span(states), all.inputs.views(), all.queries.views(),
                all.outputs.template views<S>(), parallel);
  }
  // The same, one stream after the other.
  auto steps(fw::testing::AnySequences<S>& all) {
    for (Index b = 0; b < streams; ++b)
      memory.step(states[std::size_t(b)], all.inputs.part(b, 1), all.queries.part(b, 1),
                  all.outputs.template part<S>(b, 1));
  }

  fw::AnyMemory<S> memory;
  std::vector<fw::AnyState<S>> states;
  bool positive;
  fw::Random random{3};
};

template <class S> void equals_single_steps(const Subject& subject) {
  INFO(subject.text());
  Streams<S> together(subject), alone = together;
  for (int t = 0; t < 12; ++t)
    for (const bool parallel : {false, true}) {
      auto all = together.token(), each = all;
      together.step(all, parallel);
      alone.steps(each);
      CHECK(difference(all.outputs, each.outputs) == 0);
    }
  CHECK(together.states == alone.states);
}

TEST_CASE("a step of several streams is a step of each, to the bit", "[laws][streams]") {
  using Pair = std::pair<Index, Index>;
  for (const auto& [dk, dv] : sizes<Pair>({{1, 1}, {3, 17}, {17, 5}, {64, 64}}, {{3, 5}})) {
    for (const Subject& subject : laws::subjects<double>(dk, dv))
      equals_single_steps<double>(subject);
    for (const Subject& subject : laws::subjects<float>(dk, dv))
      equals_single_steps<float>(subject);
  }
}

// The numbers that a refused step must leave as they are.
template <class Step> void refuses(const Step& step) {
  const MatrixXd two = MatrixXd::Ones(2, 2), three = MatrixXd::Ones(2, 3);
  MatrixXd y(2, 2), long_y(2, 3);
  CHECK_THROWS_AS(step(two, two, y), std::length_error);
  CHECK_THROWS_WITH(step(three, three, long_y),
                    Catch::Matchers::ContainsSubstring("has 3 columns, the states expects 2"));
  CHECK_THROWS_AS(step(two, three, y), std::invalid_argument);
  CHECK_THROWS_AS(step(two, two, long_y), std::invalid_argument);
}

TEST_CASE("a step of several streams that is refused changes no state", "[streams]") {
  const auto m = fw::make_memory<double>("KeyValueCache", {2, 2, {{"capacity", 1}, {"refuse", 1}}});
  std::vector<fw::AnyState<double>> states(2, m.initial_state());
  const Eigen::VectorXd one = Eigen::VectorXd::Ones(2);
  m.write(states[1], {one, one});
  const auto before = states;
  refuses([&](const MatrixXd& x, const MatrixXd& q, MatrixXd& y) {
    m.step(std::span(states), {x, x}, {q}, {y});
  });
  CHECK(states == before);
}

// Of a memory whose type is known: the same functions, compiled for it.
template <class M> void equals_by_name(const M& m, Streams<double> expected) {
  std::vector<fw::StateOf<M>> states(streams, fw::initial_state(m));
  fw::Random random(3);
  for (int t = 0; t < 12; ++t)
    for (const bool parallel : {false, true}) {
      auto all = fw::testing::random_sequences(m, streams, random, expected.positive);
      auto each = expected.token();
      fw::step(m, std::span(states), fw::view<fw::WriteSequence<M>>(all.inputs),
               fw::view<fw::ReadSequence<M>>(all.queries),
               fw::view<fw::OutSequence<M>>(all.outputs), parallel);
      expected.steps(each);
      CHECK(largest_entry(all.outputs.output - each.outputs["output"]) <= 1e-15);
    }
}

using Normalised =
    fw::LinearAttention<double, fw::Dynamic, fw::Dynamic, fw::AttentionNormaliser<double>>;

TEST_CASE("streams of a memory whose type is known are those of the same by name", "[streams]") {
  for (const Index d : {1, 3, 17, 64}) {
    equals_by_name(fw::DeltaRule<double>({.key_size = d}),
                   Streams<double>(laws::subject("DeltaRule", d, d)));
    equals_by_name(fw::GatedDeltaRule<double>({.key_size = d}),
                   Streams<double>(laws::subject("GatedDeltaRule", d, d)));
    equals_by_name(Normalised({.key_size = d}),
                   Streams<double>(laws::subject("NormalisedLinearAttention", d, d)));
    equals_by_name(fw::Deferred(fw::DeltaRule<double>({.key_size = d})),
                   Streams<double>(laws::subject("DeferredDeltaRule", d, d)));
    equals_by_name(fw::KeyValueCache<double>({.key_size = d}, {9}),
                   Streams<double>(laws::subject("KeyValueCache", d, d)));
  }
}

TEST_CASE("a refused step of streams whose type is known changes no state", "[streams]") {
  using M = fw::KeyValueCache<double>;
  const M m({.key_size = 2}, {.capacity = 1, .when_full = fw::WhenFull::refuse});
  std::vector<fw::StateOf<M>> states(2, fw::initial_state(m));
  const Eigen::VectorXd one = Eigen::VectorXd::Ones(2);
  fw::write(m, states[1], {one, one});
  const auto before = states;
  refuses([&](const MatrixXd& x, const MatrixXd& q, MatrixXd& y) {
    fw::step(m, std::span(states), {x, x}, {q}, {y});
  });
  for (const std::size_t b : {std::size_t(0), std::size_t(1)})
    CHECK(fw::detail::equal(fw::detail::object(states[b]), fw::detail::object(before[b])));
}

}  // namespace
