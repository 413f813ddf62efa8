// States of networks that no run of tokens gives, put together by hand and loaded from a file.

#include "support/hostile_states.hpp"

#include <fastweights/any_memory/table/caches.hpp>
#include <fastweights/layers/summed_heads.hpp>

#include "networks/long_term_checks.hpp"

namespace {

using namespace long_term;
using fw::io::SafeTensors;
using Cache = fw::KeyValueCache<double>;
using Paths = std::vector<std::string>;
constexpr Index sequences = 2, columns = 9 * sequences;

Cache sliding() { return Cache({.key_size = 2}, {3, fw::WhenFull::slide}); }

Matrix<double> inputs(Index cols) {
  fw::Random random(2);
  return random_matrix(d, cols, random);
}

// A file of a network's state is checked by the next pass, which says what is wrong with it.
hostile::Subject subject(const Net& network, State& state) {
  const auto pass = [&network](State& s, Index cols, fw::Pass kind) {
    Net::Trace trace;
    run(network, s, inputs(cols), trace, kind);
  };
  hostile::Subject all;
  all.state = fw::detail::object(state);
  all.restore = [&state, reached = state] { state = reached; };
  all.uses = {[=, &state] { pass(state, sequences, fw::Pass::infer); },
              [=, &state] { pass(state, columns, fw::Pass::infer); },
              [=, &state] { pass(state, columns, fw::Pass::train); }};
  all.save = [&state] {
    fw::io::SafeTensorsWriter writer;
    fw::io::add_state(writer, state, "stream");
    return writer.bytes();
  };
  all.load = [&state](const hostile::Bytes& file) {
    fw::io::load_state(state, SafeTensors::parse(file), "stream");
  };
  all.load_for_owner = [=, &state](const hostile::Bytes& file) {
    State loaded = state;
    fw::io::load_state(loaded, SafeTensors::parse(file), "stream");
    State after = loaded;
    try {
      pass(after, sequences, fw::Pass::infer);
    } catch (const std::invalid_argument& error) {
      throw fw::io::SafeTensorsError(error.what());
    }
    state = loaded;
  };
  return all;
}

// Two sequences after 9 tokens.
State used_state(const Net& network) {
  State state = network.initial_state(sequences);
  Net::Trace trace;
  run(network, state, inputs(columns), trace);
  return state;
}

void refuses_hostile_states(const Function& f, const Paths& free_counters) {
  const Net network = network_of(d, f);
  State state = used_state(network);
  hostile::try_counters(subject(network, state), free_counters);
}

Paths lengths(const std::string& of) {
  Paths all;
  for (Index head = 0; head < sequences * heads; ++head)
    all.push_back(of + ".heads." + std::to_string(head) + ".length");
  return all;
}

Value<double> cached(const Value<double>& x, const std::string& name) {
  return fast_weights(x, name, sliding(), {.heads = heads});
}

TEST_CASE("heads of a cache refuse states that no run of tokens gives", "[networks][hostile]") {
  refuses_hostile_states([](const Value<double>& x) { return cached(x, "mixer"); },
                         lengths("mixer.memory"));
  refuses_hostile_states(
      [](const Value<double>& x) { return summed_heads(x, "mixer", sliding(), {.heads = heads}); },
      lengths("mixer.memory"));
}

TEST_CASE("long-term attention refuses counters that do not go together", "[networks][hostile]") {
  const Paths seeds{"long_term.streams.0.draw_seed", "long_term.streams.1.draw_seed"};
  refuses_hostile_states(joined(Kind::pooling), seeds);
  refuses_hostile_states(joined(Kind::sticky), seeds);

  const Net network = network_of(d, joined(Kind::pooling));
  State state = used_state(network);
  const auto all = subject(network, state);
  const std::int64_t many = 1'000'000'000'000, written = many - 4;
  hostile::expect_refused(all, {{"long_term.streams.1.memory.tokens", written}});
  hostile::expect_refused(
      all, {{"long_term.streams.0.memory.tokens", 2}, {"long_term.streams.1.memory.tokens", 2}});
  // A stream of many tokens continues.
  state.positions.setConstant(many);
  for (const std::string stream : {"long_term.streams.0.", "long_term.streams.1."}) {
    set_number(state, stream + "memory.tokens", written);
    set_number(state, stream + "tokens", many);
  }
  Net::Trace trace;
  CHECK_NOTHROW(run(network, state, inputs(sequences), trace));
  CHECK(state.positions == Positions::Constant(sequences, many + 1));
}

TEST_CASE("weights and a stream of long-term attention are saved and loaded", "[networks]") {
  const Net network = network_of(d, joined(Kind::sticky, Join::alpha));
  State state = network.initial_state();
  fw::seed_draws(state, 3);
  Net::Trace trace;
  run(network, state, inputs(9), trace);
  fw::io::SafeTensorsWriter writer;
  fw::io::add_parameters(writer, network, "layer");
  fw::io::add_state(writer, state, "state");
  const auto file = SafeTensors::parse(writer.bytes());

  Net loaded = fw::zero_gradient(network);
  State resumed = loaded.initial_state();
  fw::io::load_parameters(loaded, file, "layer");
  fw::io::load_state(resumed, file, "state");
  CHECK(resumed.positions[0] == 9);
  CHECK(run(loaded, resumed, inputs(11), trace) == run(network, state, inputs(11), trace));
}

TEST_CASE("a full cache of one sequence changes none", "[networks][hostile]") {
  const Net network = network_of(d, [](const Value<double>& x) {
    return fast_weights(x, "mixer", Cache({.key_size = 2}, {3, fw::WhenFull::refuse}),
                        {.heads = heads});
  });
  State full = network.initial_state(), state = network.initial_state();
  Net::Trace trace;
  run(network, full, inputs(3), trace);
  state.add(full);
  State before = state;
  CHECK_THROWS_AS(run(network, state, inputs(2), trace), std::length_error);
  CHECK(state.positions == before.positions);
  fw::io::SafeTensorsWriter given, expected;
  fw::io::add_state(given, state);
  fw::io::add_state(expected, before);
  CHECK(given.bytes() == expected.bytes());
}

TEST_CASE("a model refuses the state of one block before it changes another",
          "[networks][hostile]") {
  const auto model = [](const Value<double>& x) {
    const auto y = x + cached(rms_norm(x, "norm1", {}), "first");
    return y + cached(rms_norm(y, "norm2", {}), "second");
  };
  const Net network = network_of(d, model);
  State state = used_state(network);
  hostile::expect_refused(subject(network, state), {{"second.memory.heads.1.length", -1}});

  // The blocks have states of different numbers of sequences.
  State other = network.initial_state(1);
  std::swap(state.members[1], other.members[1]);
  State before = state;
  Net::Trace trace;
  CHECK_THROWS_WITH(run(network, state, inputs(sequences), trace),
                    ContainsSubstring("second.memory: the state has 2 heads, the layer expects 4"));
  CHECK(numbers_of(state) == numbers_of(before));
}

}  // namespace
