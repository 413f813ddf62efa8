#include "support/catch.hpp"
#include "support/laws.hpp"
#include "support/sizes.hpp"

/// \file
/// Every memory of the table obeys the laws of support/laws.hpp that are not about
/// gradients.

namespace {

using fw::Index;
using laws::runs_of;
using laws::Subject;

// All memories at all sizes, square and narrow, and with other options.
template <class Law> void for_every_memory(const Law& law) {
  const auto each = [&](const std::vector<Subject>& all) {
    for (const Subject& subject : all) {
      INFO(subject.text());
      law(subject);
    }
  };
  using Pair = std::pair<Index, Index>;
  for (const Index d : sizes({1, 3, 17, 63, 64, 65, 100}, {1, 3, 17})) each(laws::subjects(d, d));
  for (const auto& [dk, dv] : sizes<Pair>({{1, 5}, {5, 1}, {3, 17}, {65, 4}}, {{5, 1}, {3, 17}}))
    each(laws::subjects(dk, dv));
  each(laws::variants());
}

TEST_CASE("a step is a write and a read", "[laws]") {
  for_every_memory([](const Subject& s) { laws::step_is_write_and_read(runs_of<double>(s)); });
}
TEST_CASE("a scan is steps, for every split of the sequence in two", "[laws]") {
  for_every_memory([](const Subject& s) { laws::scan_is_steps(runs_of<double>(s)); });
}
TEST_CASE("the chunkwise form is the recurrent form, for chunks of any length", "[laws]") {
  for_every_memory([](const Subject& s) { laws::chunked_is_recurrent(runs_of<double>(s)); });
}
TEST_CASE("merged segments and parallel scans are one scan", "[laws]") {
  for_every_memory([](const Subject& s) { laws::merged_is_recurrent(runs_of<double>(s)); });
}
TEST_CASE("a state is a value: a copy is independent, and going back repeats the same bits",
          "[laws]") {
  for_every_memory([](const Subject& s) { laws::state_is_a_value(runs_of<double>(s)); });
}
TEST_CASE("sequences of a wrong size are refused by name and leave the state unchanged", "[laws]") {
  for_every_memory([](const Subject& s) { laws::wrong_sizes_are_refused(runs_of<double>(s)); });
}
TEST_CASE("the results in float are those in double up to rounding", "[laws]") {
  for_every_memory([](const Subject& s) {
    // Moneta divides by a norm of its state, which starts at 0: of one row, the first outputs are
    // large, and so are their rounding errors.
    if (s.name == "Moneta" && s.options.value_size == 1) return;
    // Atlas takes the steps of Newton and Schulz on a matrix of 3×3 that is nearly singular.
    const double tolerance = s.name == "AtlasMemory" ? 1e-3 : 2e-5;
    laws::float_follows_double(runs_of<float>(s), runs_of<double>(s), tolerance);
  });
}

// Those that keep their matrix in 16 or 8 bits. They round as they store, so their scans and steps
// agree to the last bits, but not with a memory in double.
TEST_CASE("memories in 16 and 8 bits: states are values, scans agree with steps", "[laws]") {
  const auto check = [](Index dk, Index dv) {
    for (const Subject& subject : laws::subjects<float>(dk, dv)) {
      if (subject.has<double>()) continue;
      INFO(subject.text());
      const auto runs = runs_of<float>(subject);
      laws::state_is_a_value(runs);
      laws::scan_is_steps(runs);
      laws::wrong_sizes_are_refused(runs);
    }
  };
  for (const Index d : {1, 3, 33, 64}) check(d, d);
  for (const auto& [dk, dv] : {std::pair<Index, Index>{1, 5}, {5, 1}, {65, 4}}) check(dk, dv);
}

}  // namespace
