#include <set>

#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/subject.hpp"

/// \file
/// Options that every memory refuses when it is made.

namespace {

using laws::Subject;

// Of every memory with sizes 4 × 4 after a change of its options.
template <class Change> void refuses(const std::string& name, const Change& change) {
  Subject subject = laws::subject(name, 4, 4);
  CHECK_NOTHROW(subject.memory<float>());
  change(subject.options);
  INFO(subject.text());
  CHECK(error_of([&] { subject.memory<float>(); }).find("expected") != std::string::npos);
}

TEST_CASE("a memory of no or negative size is refused", "[laws][options]") {
  for (const std::string& name : fw::memory_names())
    for (const fw::Index size : {0, -1}) {
      refuses(name, [&](auto& options) { options.key_size = options.value_size = size; });
      if (size < 0) refuses(name, [&](auto& options) { options.value_size = size; });
    }
}

TEST_CASE("a memory that would keep, learn from or read nothing is refused", "[laws][options]") {
  const std::set<std::string> counts = {
      "capacity", "batch", "window",     "slots", "levels",  "hidden",      "functions",   "chunk",
      "rate",     "heads", "components", "bins",  "segment", "pooled_size", "frequencies", "ranks"};
  std::set<std::string> seen;
  for (const std::string& name : fw::memory_names())
    for (const fw::MemoryOption& option : fw::memory_options(name))
      if (counts.count(option.name) && option.value >= 1) {
        seen.insert(option.name);
        for (const double count : {0, -1})
          refuses(name, [&](auto& options) { options.more[option.name] = count; });
      }
  CHECK(seen == counts);
}

}  // namespace
