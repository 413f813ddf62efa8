#include <limits>
#include <stdexcept>

#include "support/catch.hpp"
#include "support/sizes.hpp"
#include "support/subject.hpp"

/// \file
/// Every memory: a step is a write and a read, a scan is steps, the chunkwise form and merged
/// segments are the recurrent form, a state is a value, wrong sizes are refused.

namespace {

using fw::Index;
using laws::difference;
using laws::Subject;
using Run = laws::Run<double>;

// All memories at all sizes, square and narrow, and with other options.
template <class Law> void for_every_memory(const Law& law) {
  const auto each = [&](const std::vector<Subject>& all) {
    for (const Subject& subject : all) {
      INFO(subject.text());
      law(subject);
    }
  };
  for (const Index d : sizes({1, 3, 17, 63, 64, 65, 100}, {1, 3, 17, 65}))
    each(laws::subjects(d, d));
  for (const auto& [dk, dv] : {std::pair<Index, Index>{1, 5}, {5, 1}, {3, 17}, {65, 4}})
    each(laws::subjects(dk, dv));
  each(laws::variants());
}

TEST_CASE("a step is a write and a read", "[laws]") {
  for_every_memory([](const Subject& subject) {
    constexpr Index length = 5;
    Run stepped(subject, length, 4, 3), separate = stepped;
    const bool reads_first = stepped.memory.can().reads_first;
    for (Index t = 0; t < length; ++t) {
      stepped.step(t);
      if (reads_first) separate.read(t);
      separate.write(t);
      if (!reads_first) separate.read(t);
    }
    // Not to the last bit: a kernel reads the token's own write and the old state separately.
    CHECK(difference(stepped.all.outputs, separate.all.outputs) <= 1e-14);
    CHECK(difference(stepped.state, separate.state) <= 1e-14);
  });
}

TEST_CASE("a scan is steps, for every split of the sequence in two", "[laws]") {
  for_every_memory([](const Subject& subject) {
    constexpr Index length = 13;
    const Run start(subject, length, 6, 4);
    Run by_steps = start;
    for (Index t = 0; t < length; ++t) by_steps.step(t);
    for (Index split = 0; split <= length; ++split) {
      Run scanned = start;
      scanned.scan(0, split);
      scanned.scan(split, length - split);
      CHECK(difference(scanned.all.outputs, by_steps.all.outputs) <= 1e-13);
      CHECK(difference(scanned.state, by_steps.state) <= 1e-13);
    }
  });
}

TEST_CASE("the chunkwise form is the recurrent form, for chunks of any length", "[laws]") {
  for_every_memory([](const Subject& subject) {
    const Run start(subject, 100, 6, 5);
    if (!start.memory.can().chunkable) return;
    Run recurrent = start;
    recurrent.scan();
    for (const Index chunk : {1, 3, 20, 63, 64, 100, 200}) {
      Run run = start;
      run.memory.chunked_scan(run.state, run.all.inputs.views(), run.all.queries.views(),
                              run.all.outputs.views<double>(), chunk);
      CHECK(difference(run.all.outputs, recurrent.all.outputs) <= 1e-12);
      CHECK(difference(run.state, recurrent.state) <= 1e-12);
    }
  });
}

TEST_CASE("merged segments and parallel scans are one scan", "[laws]") {
  for_every_memory([](const Subject& subject) {
    const Run start(subject, 23, 6, 6);
    const auto& memory = start.memory;
    if (!memory.can().mergeable) return;
    Run recurrent = start;
    recurrent.scan();
    for (const Index segments : {Index{1}, Index{2}, Index{3}, Index{7}, Index{23}, Index{40},
                                 std::numeric_limits<Index>::max()}) {
      Run run = start;
      memory.parallel_scan(run.state, run.all.inputs.views(), run.all.queries.views(),
                           run.all.outputs.views<double>(), segments);
      CHECK(difference(run.all.outputs, recurrent.all.outputs) <= 1e-12);
      CHECK(difference(run.state, recurrent.state) <= 1e-12);
    }
    Run run = start;
    auto early = memory.empty_segment(), late = memory.empty_segment();
    for (Index t = 0; t < 23; ++t) memory.extend(t < 10 ? early : late, run.input(t));
    memory.merge(early, late);
    memory.apply(early, run.state);
    CHECK(difference(run.state, recurrent.state) <= 1e-12);
  });
}

TEST_CASE("a state is a value: a copy is independent, and going back repeats the same bits",
          "[laws]") {
  for_every_memory([](const Subject& subject) {
    Run run(subject, 9, 6, 7);
    const Run snapshot = run;
    run.scan();
    Run again = snapshot;
    CHECK(again.state == snapshot.state);
    again.scan();
    CHECK(again.state == run.state);
    CHECK(difference(again.all.outputs, run.all.outputs) == 0);
    again.state = snapshot.state;
    CHECK(again.state == snapshot.state);
  });
}

// Adds a row or a column of zeros to one member of a record, scans, and expects an error that names
// the memory, and the member if it has a row more.
void refuses(const Run& start, fw::testing::AnyRecord<double> fw::testing::AnySequences<double>::*part,
             std::size_t member, bool by_row) {
  Run wrong = start;
  auto& record = wrong.all.*part;
  auto& matrix = record.matrices[member];
  matrix.setZero(matrix.rows() + (by_row ? 1 : 0), matrix.cols() + (by_row ? 0 : 1));
  const std::string name(record.members()[member].name);
  try {
    // The first input determines the length of the sequence. If that input is longer, the error
    // names another member.
    wrong.memory.scan(wrong.state, wrong.all.inputs.views(), wrong.all.queries.views(),
                      wrong.all.outputs.views<double>());
    FAIL("accepted a wrong " << name);
  } catch (const std::invalid_argument& error) {
    const std::string what = error.what();
    CHECK(what.find(start.memory.name()) == 0);
    CHECK(what.find("expects") != std::string::npos);
    if (by_row) CHECK(what.find(name) != std::string::npos);
  }
  CHECK(wrong.state == start.state);
}

TEST_CASE("sequences of a wrong size are refused by name and leave the state unchanged", "[laws]") {
  using All = fw::testing::AnySequences<double>;
  for_every_memory([](const Subject& subject) {
    const Run start(subject, 4, 3, 11);
    for (const auto part : {&All::inputs, &All::queries, &All::outputs})
      for (std::size_t i = 0; i < (start.all.*part).matrices.size(); ++i)
        for (const bool by_row : {true, false}) refuses(start, part, i, by_row);
  });
}

TEST_CASE("the results in float are those in double up to rounding", "[laws]") {
  for_every_memory([](const Subject& subject) {
    laws::Run<double> exact(subject, 50, 0, 10);
    laws::Run<float> rounded(subject, 50, 0, 10);
    exact.scan();
    rounded.scan();
    CHECK(difference(rounded.all.outputs, exact.all.outputs) <= 2e-5);
  });
}

}  // namespace
