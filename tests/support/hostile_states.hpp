#pragma once

#include <cstddef>
#include <cstdint>
#include <fastweights/core/leaves.hpp>
#include <fastweights/io/weights.hpp>
#include <functional>
#include <string>
#include <utility>
#include <vector>

/// \file
/// Tries states that no run of writes can reach, put together by hand and loaded from a file.

namespace hostile {

using Bytes = std::vector<std::byte>;

/// A state and what can be done with it. Its type is erased, so that the checks are compiled once.
struct Subject {
  fw::detail::Object state;
  std::function<void()> restore;            ///< sets the state to one that was reached by writes
  std::vector<std::function<void()>> uses;  ///< the public calls that take the state
  std::function<Bytes()> save;              ///< the state as a file
  std::function<void(const Bytes&)> load;
  std::function<void(const Bytes&)> load_for_owner;  ///< with the memory or layer
};

/// Sets one counter after another to −1, 2⁶² and 2⁶³ − 1, then to 10¹², which writes can reach if
/// no other member depends on the counter.
void try_counters(const Subject& subject, const std::vector<std::string>& free_counters);

/// Counters that do not go together, by their paths, are refused by hand and in a file.
void expect_refused(const Subject& subject,
                    const std::vector<std::pair<std::string, std::int64_t>>& counters);

/// Each of `uses` is a call, use(state). The owner and the state must outlive the subject. The
/// state may be an AnyState.
template <class Owner, class State, class... Uses>
Subject subject(const Owner& owner, State& state, Uses... uses) {
  return {.state = fw::detail::object(state),
          .restore = [&state, reached = state] { state = reached; },
          .uses = {[&state, uses] { uses(state); }...},
          .save =
              [&state] {
                fw::io::SafeTensorsWriter writer;
                fw::io::add_state(writer, state, "stream");
                return writer.bytes();
              },
          .load =
              [&state](const Bytes& file) {
                fw::io::load_state(state, fw::io::SafeTensors::parse(file), "stream");
              },
          .load_for_owner =
              [&owner, &state](const Bytes& file) {
                fw::io::load_state(owner, state, fw::io::SafeTensors::parse(file), "stream");
              }};
}

}  // namespace hostile
