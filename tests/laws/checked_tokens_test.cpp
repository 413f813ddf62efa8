#include <cmath>
#include <limits>

#include "support/checked_run.hpp"

/// \file
/// Every memory: checked calls refuse bad tokens and change nothing, and are the other calls for
/// good ones. What single memories refuse and accept is in memories/checked_test.cpp.

namespace {

using fw::Index;
using fw::Role;
using laws::CheckedRun;
using laws::Entry;
using laws::Subject;

// All memories, also of one size and with one row, in every scalar.
template <class S, class Law> void for_every_memory_of(const Law& law) {
  for (const auto& [dk, dv] : {std::pair<Index, Index>{5, 3}, {5, 5}, {1, 3}})
    for (const Subject& subject : laws::subjects<S>(dk, dv)) {
      INFO(subject.text());
      CheckedRun<S> run(subject);
      law(run);
    }
}
template <class Law> void for_every_memory(const Law& law) {
  for_every_memory_of<float>(law);
  for_every_memory_of<double>(law);
  for_every_memory_of<laws::Complex>(law);
}

bool is_finite(const laws::Values& values) {
  for (const double x : values.numbers)
    if (!std::isfinite(x)) return false;
  return true;
}

TEST_CASE("checked calls refuse numbers that are not finite or too large, in every member",
          "[checked]") {
  for_every_memory([]<class S>(CheckedRun<S>& run) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    constexpr double large = std::is_same_v<S, float> ? 3e15 : 1e151;
    run.checked_scan();  // so that state and outputs are not the first ones
    run.for_each_entry([&](const Entry& entry, const fw::SignatureMember& member) {
      for (const double bad : {std::nan(""), infinity, -infinity, large, -large})
        run.refuses(entry, bad, std::string(member.name));
    });
    run.checked_scan();
    for (Index t = 0; t < run.steps; ++t) run.checked_step(t);
    CHECK(is_finite(laws::values_of(run.state)));
  });
}

// Numbers that a role does not have, with what the error says.
template <class S>
std::vector<std::pair<double, std::string>> outside(Role role, bool key_bounds_strength) {
  switch (role) {
    case Role::strength:
      if (key_bounds_strength) {
        const bool is_float = std::is_same_v<S, float>;
        const std::string range = is_float ? "expected 0 to 1e12" : "expected 0 to 1e147";
        return {{-0.5, " is -0.5, " + range}, {is_float ? 1.1e12 : 1.1e147, range}};
      }
      return {{-0.5, " is -0.5, expected 0 to 2"}, {2.5, " is 2.5, expected 0 to 2"}};
    case Role::decay:
      return {{-1, " is -1, expected 0 to 1"}, {2, " is 2, expected 0 to 1"}};
    case Role::draw:
      return {{-0.5, " is -0.5, expected at least 0 and below 1"},
              {1, " is 1, expected at least 0 and below 1"}};
    case Role::distribution:
      return {{-0.5, " is -0.5, expected 0 to 1"}, {2, " is 2, expected 0 to 1"}};
    default:
      return {};
  }
}

TEST_CASE("checked calls refuse numbers outside of the range of their role", "[checked]") {
  for_every_memory([]<class S>(CheckedRun<S>& run) {
    run.for_each_entry([&](const Entry& entry, const fw::SignatureMember& member) {
      const std::string name(member.name);
      for (const auto& [bad, text] :
           outside<S>(member.role, run.memory.can().key_bounds_strength)) {
        run.refuses(entry, bad, name);
        run.refuses(entry, bad, text);
      }
      if (member.role == Role::distribution && member.rows > 1)
        run.refuses(entry, 0.75, "the sum of " + name + " is ");
    });
  });
}

TEST_CASE("checked calls accept the ends of the ranges of strengths and decays", "[checked]") {
  for_every_memory([]<class S>(CheckedRun<S>& run) {
    for (const double end : {0.0, -0.0, 1.0}) {
      run.for_each_entry([&](const Entry& entry, const fw::SignatureMember& member) {
        if (member.role == Role::strength || member.role == Role::decay)
          run.number(entry) = static_cast<S>(end);
      });
      CHECK_NOTHROW(run.checked_scan());
    }
  });
}

TEST_CASE("checked calls give the results of the other calls, to the bit", "[checked]") {
  for_every_memory([]<class S>(CheckedRun<S>& run) {
    CheckedRun<S> plain = run;
    run.checked_scan();
    plain.scan();
    CHECK(run.bytes() == plain.bytes());
    run.checked_step(3);
    plain.step(3);
    CHECK(run.bytes() == plain.bytes());
    run.checked_write(4);
    plain.write(4);
    CHECK(run.bytes() == plain.bytes());
  });
}

}  // namespace
