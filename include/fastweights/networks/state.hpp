#pragma once

#include <fastweights/core/leaves.hpp>
#include <fastweights/core/views.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// The state of one operation, a record of any type.
struct StatePart {
  virtual ~StatePart() = default;
  virtual std::unique_ptr<StatePart> copy() const = 0;
  virtual fw::detail::Object object() = 0;
};

template <Record T> struct StateOfPart final : StatePart {
  T value;

  explicit StateOfPart(T initial) : value(std::move(initial)) {}
  std::unique_ptr<StatePart> copy() const override { return std::make_unique<StateOfPart>(value); }
  fw::detail::Object object() override { return fw::detail::object(value); }
};

/// What streaming keeps between the passes of a network: a value, whose members have the paths of
/// the operations that own them.
class State {
 public:
  struct Member {
    std::string path;
    std::unique_ptr<StatePart> part;
  };

  Index position = 0;  ///< tokens of every sequence so far
  Index sequences = 1;
  std::vector<Member> members;
  static constexpr auto names = fw::names("position", "sequences", "members");

  State() = default;
  State(State&&) = default;
  State& operator=(State&&) = default;
  State(const State& other) : position(other.position), sequences(other.sequences) {
    for (const Member& each : other.members) members.push_back({each.path, each.part->copy()});
  }
  State& operator=(const State& other) { return *this = State(other); }

  // As a record whose members are known at run time: see core/leaves.hpp.
  std::size_t part_count() const { return members.size() + 1; }
  fw::detail::Object part(std::size_t i) {
    if (i == 0) return fw::detail::object(position, "position");
    fw::detail::Object object = members[i - 1].part->object();
    object.name = members[i - 1].path;
    return object;
  }
};

}  // namespace fw::networks
