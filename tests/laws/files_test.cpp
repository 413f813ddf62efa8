#include <fastweights/io/weights.hpp>

#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/every_memory.hpp"

/// \file
/// Every memory: a saved and loaded stream continues bit for bit, and a file that does not fit
/// changes nothing.

namespace {

using fw::AnyState;
using fw::Index;
using fw::io::SafeTensors;
using fw::io::SafeTensorsError;
using laws::difference;
using laws::for_every_memory;
using laws::in_float_and_double;
using laws::Run;
using laws::Subject;

template <class S> SafeTensors file_of(const AnyState<S>& state) {
  fw::io::SafeTensorsWriter writer;
  fw::io::add_state(writer, state, "stream");
  return SafeTensors::parse(writer.bytes());
}

const laws::SizePairs sizes{{5, 3}, {4, 4}, {4, 1}};

TEST_CASE("save then load is the identity, and the stream continues bit for bit", "[weights]") {
  in_float_and_double(sizes, []<class S>(S, const Subject& subject) {
    Run<S> run(subject, 9, 7, 3);
    const SafeTensors file = file_of(run.state);
    Run<S> loaded = run, unchecked = run;
    loaded.state = loaded.memory.initial_state();
    unchecked.state = loaded.state;
    fw::io::load_state(loaded.memory, loaded.state, file, "stream");
    fw::io::load_state(unchecked.state, file, "stream");
    CHECK(loaded.state == run.state);
    CHECK(unchecked.state == run.state);
    run.scan();
    loaded.scan();
    CHECK(difference(loaded.all.outputs, run.all.outputs) == 0);
    CHECK(loaded.state == run.state);
  });
}

TEST_CASE("a state in float is loaded into the same memory in double", "[weights]") {
  for_every_memory<float>(sizes, [](const Subject& subject) {
    if (!subject.has<double>()) return;
    const Run<float> run(subject, 0, 7, 3);
    const auto memory = subject.memory<double>();
    auto state = memory.initial_state();
    fw::io::load_state(memory, state, file_of(run.state), "stream");
    CHECK(difference(state, run.state) == 0);
  });
}

TEST_CASE("a state of another size is refused and changes nothing", "[weights]") {
  in_float_and_double(sizes, []<class S>(S, const Subject& subject) {
    Run<S> run(subject, 0, 7, 3);
    Subject larger = subject;
    larger.options.key_size += 6;  // two and three heads divide it
    if (larger.options.value_size > 0) larger.options.value_size += 6;
    const auto file = file_of(larger.memory<S>().initial_state());
    const AnyState<S> before = run.state;
    const std::string error = error_of<SafeTensorsError>(
        [&] { fw::io::load_state(run.memory, run.state, file, "stream"); });
    INFO(error);
    CHECK(error.find("tensor \"stream.") != std::string::npos);
    CHECK(error.find("expected shape") != std::string::npos);
    CHECK(run.state == before);
  });
}

TEST_CASE("a missing or an unexpected member is refused and changes nothing", "[weights]") {
  in_float_and_double(sizes, []<class S>(S, const Subject& subject) {
    Run<S> run(subject, 0, 7, 3);
    const AnyState<S> before = run.state;
    const auto fails = [&](const SafeTensors& file, const std::string& text) {
      const std::string error = error_of<SafeTensorsError>(
          [&] { fw::io::load_state(run.memory, run.state, file, "stream"); });
      INFO(error);
      CHECK(error.find(text) != std::string::npos);
      CHECK(run.state == before);
    };
    fw::io::SafeTensorsWriter more;
    fw::io::add_state(more, run.memory.initial_state(), "stream");
    more.add("stream.more", Eigen::VectorXf::Zero(1).eval());
    fails(SafeTensors::parse(more.bytes()), "\"stream.more\": in the file, but not expected");
    fw::io::SafeTensorsWriter other;
    fw::io::add_state(other, run.memory.initial_state(), "other");
    fails(SafeTensors::parse(other.bytes()), "\"stream.");
  });
}

}  // namespace
