#pragma once

#include <fastweights/core/leaves.hpp>
#include <fastweights/core/views.hpp>
#include <fastweights/networks/streams.hpp>
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
  /// The state of sequence b of B.
  virtual std::unique_ptr<StatePart> stream(Index b, Index sequences) const = 0;
  /// Adds the sequences of another state of the same operation behind its own.
  virtual void add(const StatePart& other) = 0;
  /// Takes sequence b of B out.
  virtual void remove(Index b, Index sequences) = 0;
};

namespace detail {

// The columns of sequence b of B in a matrix that has as many for each.
template <class M> auto columns_of(M& matrix, Index b, Index sequences) {
  const Index each = matrix.cols() / sequences;
  return matrix.middleCols(b * each, each);
}

// Calls f(member, the same member of `other`) for all matrices of a record.
template <class T, class Other, class F> void for_members(T& record, Other& other, const F& f) {
  const auto own = fw::members(record);
  const auto theirs = fw::members(other);
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    (f(std::get<i>(own), std::get<i>(theirs)), ...);
  }
  (std::make_index_sequence<std::tuple_size_v<std::remove_cvref_t<decltype(own)>>>());
}

// Also of records whose types are known at run time, such as those of memories.
inline bool same_records(const fw::detail::Object& a, const fw::detail::Object& b) {
  if (a.type != b.type) return false;
  if (a.type->leaf || !a.type->count) return fw::detail::same_shapes(a, b, true);
  const std::size_t parts = a.type->count(a.address);
  bool same = parts == b.type->count(b.address);
  for (std::size_t i = 0; same && i < parts; ++i)
    same = same_records(a.type->part(a.address, i), b.type->part(b.address, i));
  return same;
}

}  // namespace detail

/// The state of an operation that keeps a record of type T: matrices with as many columns for every
/// sequence. A record of another form has stream, add and remove of its own, as StatePart has.
template <Record T> struct StateOfPart final : StatePart {
  T value;  ///< the record

  /// Starts from `initial`.
  explicit StateOfPart(T initial) : value(std::move(initial)) {}
  std::unique_ptr<StatePart> copy() const override { return std::make_unique<StateOfPart>(value); }
  fw::detail::Object object() override { return fw::detail::object(value); }

  std::unique_ptr<StatePart> stream(Index b, Index sequences) const override {
    if constexpr (own_form) {
      return std::make_unique<StateOfPart>(value.stream(b, sequences));
    } else {
      T one = value;
      detail::for_members(one, value, [&](auto& to, const auto& from) {
        to = detail::columns_of(from, b, sequences);
      });
      return std::make_unique<StateOfPart>(std::move(one));
    }
  }
  void add(const StatePart& other) override {
    const T& more = static_cast<const StateOfPart&>(other).value;
    if constexpr (own_form)
      value.add(more);
    else
      detail::for_members(value, more, [](auto& to, const auto& from) {
        const Index before = to.cols();
        to.conservativeResize(from.rows(), before + from.cols());
        to.rightCols(from.cols()) = from;
      });
  }
  void remove(Index b, Index sequences) override {
    if constexpr (own_form)
      value.remove(b, sequences);
    else
      detail::for_members(value, value, [&](auto& to, const auto&) {
        const Index each = to.cols() / sequences, after = (sequences - 1 - b) * each;
        for (Index i = 0; i < after; ++i) to.col(b * each + i) = to.col((b + 1) * each + i);
        to.conservativeResize(Eigen::NoChange, to.cols() - each);
      });
  }

 private:
  static constexpr bool own_form = requires(T & t) { t.remove(Index(), Index()); };
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

  Positions positions = Positions::Zero(1);  ///< tokens of each of the B sequences so far
  std::vector<Member> members;               ///< in the order of the operations
  static constexpr auto names = fw::names("positions", "members");

  /// The state of no operations.
  State() = default;
  /// Takes the parts of the other.
  State(State&&) = default;
  State& operator=(State&&) = default;
  /// Copies every part.
  State(const State& other) : positions(other.positions) {
    for (const Member& each : other.members) members.push_back({each.path, each.part->copy()});
  }
  State& operator=(const State& other) { return *this = State(other); }

  /// B, the number of sequences.
  Index sequences() const { return positions.size(); }
  /// A copy of sequence b, as a state of its own. Throws std::invalid_argument for another b.
  State stream(Index b) const {
    check_stream(b);
    State one;
    one.positions[0] = positions[b];
    for (const Member& each : members)
      one.members.push_back({each.path, each.part->stream(b, sequences())});
    return one;
  }
  /// Adds the sequences of another state of the same network behind its own. Throws
  /// std::invalid_argument for a state of another network.
  void add(const State& other) {
    if (&other == this) return add(State(other));
    check_same_network(other);
    for (std::size_t i = 0; i < members.size(); ++i) members[i].part->add(*other.members[i].part);
    positions.conservativeResize(sequences() + other.sequences());
    positions.tail(other.sequences()) = other.positions;
  }
  /// Takes sequence b out; the sequences behind it move up. One sequence at least must be left.
  void remove(Index b) {
    check_stream(b);
    if (sequences() == 1)
      fw::detail::throw_invalid({"State: one sequence is left, expected two to remove one"});
    for (Member& each : members) each.part->remove(b, sequences());
    const Index after = sequences() - 1 - b;
    positions.segment(b, after) = positions.tail(after).eval();
    positions.conservativeResize(sequences() - 1);
  }

  /// As a record whose members are known at run time: see core/leaves.hpp.
  std::size_t part_count() const { return members.size() + 1; }
  /// Part i: first the positions, a number if there is one sequence; then the members.
  fw::detail::Object part(std::size_t i) {
    if (i == 0 && sequences() == 1) return fw::detail::object(positions[0], "position");
    if (i == 0) return fw::detail::object(positions, "position");
    fw::detail::Object object = members[i - 1].part->object();
    object.name = members[i - 1].path;
    return object;
  }

 private:
  void check_stream(Index b) const {
    if (b < 0 || b >= sequences())
      fw::detail::throw_invalid({"State: sequence ", std::to_string(b), " of ",
                                 std::to_string(sequences()), ", which count from 0"});
  }
  // Before anything changes: the states of one sequence have the same records of the same shapes.
  void check_same_network(const State& other) const {
    bool same = members.size() == other.members.size();
    for (std::size_t i = 0; same && i < members.size(); ++i) {
      const auto own = members[i].part->stream(0, sequences());
      const auto theirs = other.members[i].part->stream(0, other.sequences());
      same = members[i].path == other.members[i].path &&
             detail::same_records(own->object(), theirs->object());
    }
    if (!same) fw::detail::throw_invalid({"State: the other state is that of another network"});
  }
};

}  // namespace fw::networks
