#pragma once

#include <fastweights/core/leaves.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Takes states from one part of a sequence to the next, where every part is in a process of its
/// own and all of them run the same layers. A layer that keeps a state calls these in its forward
/// and backward pass, in the same order in every process:
///
///     model.forward(state, x, y, trace, fw::Pass::train.over(relay));
///
/// fw::mpi::Relay is one for MPI. What a layer sends has the size of what the next one expects;
/// detail::send_state sends the columns of a cache that grows before the cache. The functions
/// change nothing at the ends of the sequence. They are called by the thread that called the layer.
class Relay {
 public:
  /// Ends a relay; a pass must not refer to it any more.
  virtual ~Relay() = default;

  /// The state after the part before becomes the state before this part.
  virtual void receive_state(const detail::Object& state) = 0;
  virtual void send_state(const detail::Object& state) = 0;
  /// The same for gradients, from the part behind to the one before.
  virtual void receive_gradient(const detail::Object& state) = 0;
  virtual void send_gradient(const detail::Object& state) = 0;
};

namespace detail {

/// A state comes by a relay, or leaves: an array that grows after its number of columns.
inline void receive_state(Relay& relay, const Object& state) {
  move_record(state, [&](const Object& part) { relay.receive_state(part); });
}
inline void send_state(Relay& relay, const Object& state) {
  move_record(state, [&](const Object& part) { relay.send_state(part); });
}
inline void receive_gradient(Relay& relay, const Object& state) {
  move_record(state, [&](const Object& part) { relay.receive_gradient(part); });
}
inline void send_gradient(Relay& relay, const Object& state) {
  move_record(state, [&](const Object& part) { relay.send_gradient(part); });
}

}  // namespace detail

/// What a forward pass is for, and where the other parts of the sequence are.
class Pass {
 public:
  static const Pass infer;  ///< outputs only
  static const Pass train;  ///< stores what backward needs

  /// Whether backward follows.
  constexpr bool trains() const { return trains_; }
  /// Null if the sequence is whole.
  constexpr Relay* relay() const { return relay_; }
  /// The same for a part of a sequence. The relay must live until backward has ended.
  constexpr Pass over(Relay& relay) const { return Pass(trains_, &relay); }

 private:
  constexpr explicit Pass(bool trains, Relay* relay = nullptr) : trains_(trains), relay_(relay) {}

  bool trains_;
  Relay* relay_;
};

inline constexpr Pass Pass::infer{false};
inline constexpr Pass Pass::train{true};

}  // namespace fw
