#include "support/hostile_states.hpp"

#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/memories/adaptors/deferred.hpp>
#include <fastweights/memories/adaptors/feature_mapped.hpp>
#include <fastweights/memories/attention/key_value_cache.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>

#include "support/accepted_tokens.hpp"
#include "support/catch.hpp"

/// \file
/// Every memory whose state has counters: a number of tokens that no run of writes gives is
/// refused, in a file and by every call.

namespace {

using fw::AnyMemory;
using fw::AnyState;
using fw::Index;
using laws::Subject;

bool has_counters(const fw::detail::Object& state) {
  bool found = false;
  fw::detail::visit_leaves(&state, 1, [&](const fw::detail::Leaf* leaf, const auto&) {
    found |= leaf->scalar == fw::detail::ScalarKind::integer && !leaf->is_array;
  });
  return found;
}

// Tries the counters of a state after four tokens, if it has any. Those of `free_counters` may be
// any number of tokens.
template <class S>
void refuses_hostile_states(const AnyMemory<S>& m, const std::vector<std::string>& free_counters) {
  AnyState<S> state = m.initial_state();
  if (!has_counters(state.object())) return;
  auto all = laws::accepted_tokens(m, 4), gradients = all;
  fw::testing::scan(m, state, all);
  const auto inputs = all.inputs.part(0, 3), queries = all.queries.part(0, 3);
  const auto outputs = all.outputs.template part<S>(0, 3);
  const auto input = all.inputs.part(0, 1), query = all.queries.part(0, 1);
  const auto output = all.outputs.template part<S>(0, 1);
  using State = AnyState<S>;
  auto subject = hostile::subject(m, state, [&](State& s) { m.read(s, query, output); });
  const auto use = [&](auto call) { subject.uses.push_back([&, call] { call(state); }); };
  use([&](State& s) { m.write(s, input); });
  use([&](State& s) { m.step(s, input, query, output); });
  use([&](State& s) { m.step(std::span(&s, 1), input, query, output); });
  use([&](State& s) { m.scan(s, inputs, queries, outputs); });
  use([&](State& s) { m.scan(std::span(&s, 1), inputs, queries, outputs); });
  use([&](State& s) { m.checked_write(s, input); });
  use([&](State& s) { m.checked_step(s, input, query, output); });
  use([&](State& s) { m.checked_scan(s, inputs, queries, outputs); });
  if (m.can().chunkable) use([&](State& s) { m.chunked_scan(s, inputs, queries, outputs); });
  if (m.can().rolls_back) use([&](State& s) { m.roll_back(s, 0); });
  if (m.can().differentiable) {
    use([&](State& s) {
      fw::AnyCheckpoints<S> checkpoints;
      m.scan(s, inputs, queries, outputs, checkpoints);
    });
    use([&](State& s) {
      State ds = m.zero_gradient();
      m.backward(s, inputs, queries, gradients.outputs.part(0, 3), ds,
                 gradients.inputs.template part<S>(0, 3), gradients.queries.template part<S>(0, 3));
    });
  }
  hostile::try_counters(subject, free_counters);
}

// The counters of memories that forget the oldest tokens, or count without a limit, are free.
// Test-time training counts the tokens of its mini-batch.
std::vector<std::string> free_counters(const Subject& subject) {
  const auto is_set = [&](const char* option) {
    const auto found = subject.options.more.find(option);
    return found != subject.options.more.end() && found->second == 1;
  };
  const bool grows = subject.name == "KeyValueCache" && !is_set("slide");
  if (subject.name.starts_with("Ttt") || grows || is_set("refuse")) return {};
  return {"length", "tokens", "history.length"};
}

template <class S> void tries(const std::vector<Subject>& all) {
  for (const Subject& subject : all) {
    INFO(subject.text());
    refuses_hostile_states(subject.memory<S>(), free_counters(subject));
  }
}

TEST_CASE("states that no run of writes can reach are refused", "[hostile]") {
  tries<float>(laws::subjects<float>(4, 4));
  tries<float>(laws::variants<float>());
  tries<double>(laws::subjects<double>(4, 4));
  tries<double>(laws::variants<double>());
}

TEST_CASE("a memory behind a feature map has the counters of the memory", "[hostile]") {
  using Cache = fw::KeyValueCache<float>;
  using Mapped = fw::FeatureMapped<Cache, fw::EluPlusOne>;
  const Cache slides({.key_size = 3}, {5, fw::WhenFull::slide}),
      refuses({.key_size = 3}, {9, fw::WhenFull::refuse}), grows({.key_size = 3}, {3});
  refuses_hostile_states(AnyMemory<float>(Mapped(slides, 3)), {"length"});
  refuses_hostile_states(AnyMemory<float>(Mapped(refuses, 3)), {});
  refuses_hostile_states(AnyMemory<float>(Mapped(grows, 3)), {});
}

TEST_CASE("a flush refuses more pending writes than a deferred rule has room for", "[hostile]") {
  using Delta = fw::DeltaRule<float>;
  const fw::Deferred<Delta, 4> deferred(Delta({.key_size = 3}));
  auto state = fw::initial_state(deferred);
  state.pending = 4;
  CHECK_THROWS_WITH(deferred.flush(state),
                    "Deferred DeltaRule: pending is 4 in the state, expected 0 to 3");
}

TEST_CASE("the state of another memory is refused and unchanged", "[hostile]") {
  const auto sum = laws::subject("LinearAttention", 3, 3).memory<float>();
  const auto delta = laws::subject("DeltaRule", 4, 3).memory<float>();
  fw::io::SafeTensorsWriter writer;
  fw::io::add_state(writer, delta.initial_state());
  const auto file = fw::io::SafeTensors::parse(writer.bytes());
  AnyState<float> state = sum.initial_state();
  const AnyState<float> before = state;
  CHECK_THROWS_WITH(sum.check_state(delta.initial_state()),
                    "LinearAttention: the state is empty or one of another memory; "
                    "initial_state() of this memory makes one");
  CHECK_THROWS_AS(fw::io::load_state(sum, state, file), fw::io::SafeTensorsError);
  CHECK(state == before);
  AnyState<float> none;
  CHECK_THROWS_AS(fw::io::load_state(delta, none, file), fw::io::SafeTensorsError);
  CHECK(!none);
}

}  // namespace
