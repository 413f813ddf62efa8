#include "support/run.hpp"

#include <limits>
#include <stdexcept>

#include "support/catch.hpp"

namespace laws {

/// step = write then read (read then write if the rule reads first).
void step_is_write_and_read(const MakeRun& make) {
  constexpr Index length = 5;
  const auto stepped = make(length, 4, 3), separate = stepped->copy();
  for (Index t = 0; t < length; ++t) {
    stepped->step(t);
    if (separate->reads_first()) separate->read(t);
    separate->write(t);
    if (!separate->reads_first()) separate->read(t);
  }
  // Not to the last bit: a kernel reads the token's own write and the old state separately.
  CHECK(difference(stepped->outputs(), separate->outputs()) <= 1e-14);
  CHECK(difference(stepped->state(), separate->state()) <= 1e-14);
}

/// scan = steps, for every split of the sequence in two, from a random state.
void scan_is_steps(const MakeRun& make) {
  constexpr Index length = 13;
  const auto start = make(length, 6, 4), by_steps = start->copy();
  for (Index t = 0; t < length; ++t) by_steps->step(t);
  for (Index split = 0; split <= length; ++split) {
    const auto scanned = start->copy();
    scanned->scan(0, split);
    scanned->scan(split, length - split);
    CHECK(difference(scanned->outputs(), by_steps->outputs()) <= 1e-13);
    CHECK(difference(scanned->state(), by_steps->state()) <= 1e-13);
  }
}

/// The chunkwise form = the recurrent form, for any chunk length, also beyond the sequence's.
void chunked_is_recurrent(const MakeRun& make) {
  const auto start = make(100, 6, 5);
  if (!start->is_chunkable()) return;
  const auto recurrent = start->copy();
  recurrent->scan();
  for (const Index chunk : {1, 3, 20, 63, 64, 100, 200}) {
    const auto chunked = start->copy();
    chunked->chunked_scan(chunk);
    CHECK(difference(chunked->outputs(), recurrent->outputs()) <= 1e-12);
    CHECK(difference(chunked->state(), recurrent->state()) <= 1e-12);
  }
}

/// parallel_scan and merged segments = one scan.
void merged_is_recurrent(const MakeRun& make) {
  const auto start = make(23, 6, 6);
  if (!start->is_mergeable()) return;
  const auto recurrent = start->copy();
  recurrent->scan();
  for (const Index segments : {Index{1}, Index{2}, Index{3}, Index{7}, Index{23}, Index{40},
                               std::numeric_limits<Index>::max()}) {
    const auto parallel = start->copy();
    parallel->parallel_scan(segments);
    CHECK(difference(parallel->outputs(), recurrent->outputs()) <= 1e-12);
    CHECK(difference(parallel->state(), recurrent->state()) <= 1e-12);
  }
  const auto merged = start->copy();
  merged->apply_segments(10);
  CHECK(difference(merged->state(), recurrent->state()) <= 1e-12);
}

/// A state is a value: a copy is independent, and a rollback repeats the same bits.
void state_is_a_value(const MakeRun& make) {
  const auto run = make(9, 6, 7), snapshot = run->copy();
  run->scan();
  const auto again = snapshot->copy();
  CHECK(difference(again->state(), snapshot->state()) == 0);
  again->scan();
  CHECK(difference(again->state(), run->state()) == 0);
  CHECK(difference(again->outputs(), run->outputs()) == 0);
}

/// A sequence of the wrong size is refused by name and leaves the state unchanged.
void wrong_sizes_are_refused(const MakeRun& make) {
  const auto start = make(4, 3, 11);
  for (const bool by_row : {true, false})
    for (const Part part : {Part::inputs, Part::queries, Part::outputs}) {
      const std::vector<std::string> members = start->members(part);
      for (std::size_t member = 0; member < members.size(); ++member) {
        const auto wrong = start->copy();
        const bool has_extra_row = wrong->enlarge(part, member, by_row);
        try {
          wrong->scan();
          // The first input determines the length of the sequence. If that input is longer, the
          // error names another member.
          FAIL("accepted a wrong " << members[member]);
        } catch (const std::invalid_argument& error) {
          const std::string what = error.what();
          CHECK(what.find(start->name()) == 0);
          CHECK(what.find("expects") != std::string::npos);
          if (has_extra_row) CHECK(what.find(members[member]) != std::string::npos);
        }
        CHECK(difference(wrong->state(), start->state()) == 0);
      }
    }
}

}  // namespace laws
