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
  /// Parts are deleted through this base.
  virtual ~StatePart() = default;
  /// A copy of the state.
  virtual std::unique_ptr<StatePart> copy() const = 0;
  /// The state as a record.
  virtual fw::detail::Object object() = 0;
};

/// The state of an operation that keeps a record of type T.
template <Record T> struct StateOfPart final : StatePart {
  T value;  ///< the record

  /// Starts from `initial`.
  explicit StateOfPart(T initial) : value(std::move(initial)) {}
  std::unique_ptr<StatePart> copy() const override { return std::make_unique<StateOfPart>(value); }
  fw::detail::Object object() override { return fw::detail::object(value); }
};

/// What streaming keeps between the passes of a network: a value, whose members have the paths of
/// the operations that own them.
class State {
 public:
  /// The state of one operation.
  struct Member {
    std::string path;                 ///< the path of the operation
    std::unique_ptr<StatePart> part;  ///< its state
  };

  Index position = 0;  ///< tokens of every sequence so far
  /// B, the sequences of a pass.
  Index sequences = 1;
  std::vector<Member> members;  ///< in the order of the operations
  static constexpr auto names = fw::names("position", "sequences", "members");

  /// The state of no operations.
  State() = default;
  /// Takes the parts of the other.
  State(State&&) = default;
  State& operator=(State&&) = default;
  /// Copies every part.
  State(const State& other) : position(other.position), sequences(other.sequences) {
    for (const Member& each : other.members) members.push_back({each.path, each.part->copy()});
  }
  State& operator=(const State& other) { return *this = State(other); }

  /// As a record whose members are known at run time: see core/leaves.hpp.
  std::size_t part_count() const { return members.size() + 1; }
  /// Part i: first the position, then the members.
  fw::detail::Object part(std::size_t i) {
    if (i == 0) return fw::detail::object(position, "position");
    fw::detail::Object object = members[i - 1].part->object();
    object.name = members[i - 1].path;
    return object;
  }
};

}  // namespace fw::networks
