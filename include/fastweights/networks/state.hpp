#pragma once

#include <algorithm>
#include <array>
#include <fastweights/core/leaves.hpp>
#include <fastweights/core/views.hpp>
#include <fastweights/networks/roll_back.hpp>
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
  /// True if it has `assign`, which a state that rolls back needs.
  virtual bool assigns() const { return false; }
  /// Sequence b of B becomes that of another state of the same operation. Does not allocate if the
  /// sizes are equal.
  virtual void assign(Index /*b*/, Index /*sequences*/, const StatePart& /*other*/) {}
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
/// sequence. A record of another form has stream, add, remove and, to roll back, assign of its own,
/// as StatePart has.
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
  bool assigns() const override { return !own_form || own_assign; }
  void assign(Index b, Index sequences, const StatePart& other) override {
    [[maybe_unused]] const T& from = static_cast<const StateOfPart&>(other).value;
    if constexpr (own_assign)
      value.assign(b, sequences, from);
    else if constexpr (!own_form)
      detail::for_members(value, from, [&](auto& to, const auto& source) {
        detail::columns_of(to, b, sequences) = detail::columns_of(source, b, sequences);
      });
  }

 private:
  static constexpr bool own_form = requires(T & t) { t.remove(Index(), Index()); };
  static constexpr bool own_assign = requires(T & t, const T& from) {
    t.assign(Index(), Index(), from);
  };
};

/// The part of a state that rolls back for one operation: see roll_back.hpp.
struct KeptPart {
  std::string path;                                       ///< names it in files
  std::array<std::unique_ptr<StatePart>, 2> checkpoints;  ///< earlier states
  std::unique_ptr<StatePart> inputs;                      ///< of the kept tokens

  /// A copy.
  std::unique_ptr<KeptPart> copy() const {
    return each([](const StatePart& part) { return part.copy(); });
  }
  /// That of sequence b of B.
  std::unique_ptr<KeptPart> stream(Index b, Index sequences) const {
    return each([&](const StatePart& part) { return part.stream(b, sequences); });
  }
  /// Adds the sequences of another one behind its own.
  void add(const KeptPart& other) {
    for (std::size_t i = 0; i < 2; ++i) checkpoints[i]->add(*other.checkpoints[i]);
    inputs->add(*other.inputs);
  }
  /// Takes sequence b of B out.
  void remove(Index b, Index sequences) {
    for (const auto& state : checkpoints) state->remove(b, sequences);
    inputs->remove(b, sequences);
  }

  /// As a record whose members are known at run time: see core/leaves.hpp.
  std::size_t part_count() const { return 3; }
  /// The inputs, then the checkpoints.
  fw::detail::Object part(std::size_t i) {
    fw::detail::Object object = i == 0 ? inputs->object() : checkpoints[i - 1]->object();
    object.name = i == 0 ? "kept" : i == 1 ? "checkpoint_0" : "checkpoint_1";
    return object;
  }

 private:
  template <class F> std::unique_ptr<KeptPart> each(const F& f) const {
    auto result = std::make_unique<KeptPart>();
    result->path = path;
    for (std::size_t i = 0; i < 2; ++i) result->checkpoints[i] = f(*checkpoints[i]);
    result->inputs = f(*inputs);
    return result;
  }
};

/// The state of a network between its passes: a value, whose members have the paths of
/// the operations that own them.
///
/// Network::initial_state({.roll_back = R}) makes a state whose last R tokens can be rolled back:
///
///     auto state = network.initial_state({.roll_back = 8});
///     network.forward(state, drafts, logits, trace);
///     state.roll_back(3);  // the last three drafts have never been
///
/// For every operation it keeps two earlier states and the inputs of the last tokens, up to
/// 2 max(R, 8); a cache that does not slide and a Deferred memory of at least R tokens take tokens
/// back themselves and keep nothing. A pass of one token takes one copy of the states in max(R, 8)
/// passes longer. A roll back itself copies nothing; the next pass shows operations with a state up
/// to max(R, 8) tokens again. Weights are not read again, except by operations whose state depends
/// on them.
class State {
 public:
  /// The state of one operation.
  struct Member {
    std::string path;                          ///< the path of the operation
    std::unique_ptr<StatePart> part;           ///< its state
    std::unique_ptr<KeptPart> kept = nullptr;  ///< for a roll back, unless it needs none
  };

  Positions positions = Positions::Zero(1);  ///< tokens of each of the B sequences so far
  std::vector<Member> members;               ///< in the order of the operations
  Index roll_back_limit = 0;                 ///< R
  std::vector<KeptTokens> kept;              ///< of every sequence, if R > 0
  static constexpr auto names = fw::names("positions", "members", "roll_back_limit", "kept");

  /// The state of no operations.
  State() = default;
  /// Takes the parts of the other.
  State(State&&) = default;
  State& operator=(State&&) = default;
  /// Copies every part.
  State(const State& other)
      : positions(other.positions), roll_back_limit(other.roll_back_limit), kept(other.kept) {
    for (const Member& each : other.members)
      members.push_back({each.path, each.part->copy(), each.kept ? each.kept->copy() : nullptr});
  }
  State& operator=(const State& other) { return *this = State(other); }

  /// B, the number of sequences.
  Index sequences() const { return positions.size(); }
  /// A copy of sequence b, as a state of its own. Throws std::invalid_argument for another b.
  State stream(Index b) const {
    check_stream(b);
    State one;
    one.positions[0] = positions[b];
    one.roll_back_limit = roll_back_limit;
    if (roll_back_limit > 0) one.kept = {kept.at(std::size_t(b))};
    for (const Member& each : members)
      one.members.push_back({each.path, each.part->stream(b, sequences()),
                             each.kept ? each.kept->stream(b, sequences()) : nullptr});
    return one;
  }
  /// Adds the sequences of another state of the same network behind its own. Throws
  /// std::invalid_argument for a state of another network, or that rolls back another number of
  /// tokens.
  void add(const State& other) {
    if (&other == this) return add(State(other));
    check_same_network(other);
    for (std::size_t i = 0; i < members.size(); ++i) {
      members[i].part->add(*other.members[i].part);
      if (members[i].kept) members[i].kept->add(*other.members[i].kept);
    }
    positions.conservativeResize(sequences() + other.sequences());
    positions.tail(other.sequences()) = other.positions;
    kept.insert(kept.end(), other.kept.begin(), other.kept.end());
  }
  /// Takes sequence b out; the sequences behind it move up. One sequence at least must be left.
  void remove(Index b) {
    check_stream(b);
    if (sequences() == 1)
      fw::detail::throw_invalid({"State: one sequence is left, expected two to remove one"});
    for (Member& each : members) {
      each.part->remove(b, sequences());
      if (each.kept) each.kept->remove(b, sequences());
    }
    const Index after = sequences() - 1 - b;
    positions.segment(b, after) = positions.tail(after).eval();
    positions.conservativeResize(sequences() - 1);
    if (roll_back_limit > 0) kept.erase(kept.begin() + b);
  }

  /// Tokens of sequence b that can be rolled back now: at most R, none before the first token, and
  /// fewer after a roll back.
  Index most_rolled_back(Index b) const {
    check_stream(b);
    return roll_back_limit == 0 ? 0 : kept.at(std::size_t(b)).left;
  }
  /// Rolls back the last tokens of every sequence, as if they had never been: the outputs of
  /// further tokens are the same up to rounding. Throws std::invalid_argument, and changes nothing,
  /// for more than can be rolled back.
  void roll_back(Index tokens) {
    for (Index b = 0; b < sequences(); ++b) check_roll_back(b, tokens);
    for (Index b = 0; b < sequences(); ++b) take_back(b, tokens);
  }
  /// Rolls back sequence b alone.
  void roll_back(Index tokens, Index b) {
    check_roll_back(b, tokens);
    take_back(b, tokens);
  }

  /// As a record whose members are known at run time: see core/leaves.hpp.
  std::size_t part_count() const {
    return members.size() + 1 + (roll_back_limit > 0 ? 1 + kept_parts() : 0);
  }
  /// Part i: first the positions, a number if there is one sequence; then the members. With R > 0
  /// the kept tokens follow, and what operations keep for them.
  fw::detail::Object part(std::size_t i) {
    if (i == 0 && sequences() == 1) return fw::detail::object(positions[0], "position");
    if (i == 0) return fw::detail::object(positions, "position");
    if (i == members.size() + 1) return fw::detail::object(kept, "roll_back");
    if (i > members.size() + 1) return kept_part(i - members.size() - 2);
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
  void check_roll_back(Index b, Index tokens) const {
    const Index most = most_rolled_back(b);
    if (roll_back_limit == 0 && tokens != 0)
      fw::detail::throw_invalid({"State: roll_back of ", std::to_string(tokens),
                                 " tokens, the state keeps none; expected one of initial_state "
                                 "with the option roll_back"});
    if (tokens < 0 || tokens > most)
      fw::detail::throw_invalid({"State: roll_back of ", std::to_string(tokens),
                                 " tokens of sequence ", std::to_string(b), ", expected 0 to ",
                                 std::to_string(most)});
  }
  void take_back(Index b, Index tokens) {
    if (tokens == 0) return;
    KeptTokens& own = kept[std::size_t(b)];
    positions[b] -= tokens;
    own.kept -= tokens;
    own.left -= tokens;
    own.taken += tokens;
  }
  std::size_t kept_parts() const {
    return std::size_t(std::count_if(members.begin(), members.end(),
                                     [](const Member& each) { return each.kept != nullptr; }));
  }
  fw::detail::Object kept_part(std::size_t i) {
    auto at = members.begin();
    while (!at->kept || i-- > 0) ++at;
    return fw::detail::object(*at->kept, at->kept->path);
  }
  // Before anything changes: the states of one sequence have the same records of the same shapes.
  void check_same_network(const State& other) const {
    if (other.roll_back_limit != roll_back_limit)
      fw::detail::throw_invalid({"State: the other state rolls back ",
                                 std::to_string(other.roll_back_limit), " tokens, expected ",
                                 std::to_string(roll_back_limit)});
    bool same = members.size() == other.members.size();
    for (std::size_t i = 0; same && i < members.size(); ++i) {
      const Member &own = members[i], &theirs = other.members[i];
      same = own.path == theirs.path && (own.kept != nullptr) == (theirs.kept != nullptr) &&
             same_shapes(*own.part, *theirs.part, other.sequences()) &&
             (!own.kept || same_shapes(*own.kept->inputs, *theirs.kept->inputs, other.sequences()));
    }
    if (!same) fw::detail::throw_invalid({"State: the other state is that of another network"});
  }
  bool same_shapes(const StatePart& own, const StatePart& other, Index others) const {
    const auto a = own.stream(0, sequences()), b = other.stream(0, others);
    return detail::same_records(a->object(), b->object());
  }
};

}  // namespace fw::networks
