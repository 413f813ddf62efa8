#pragma once

#include <fastweights/core/leaves.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Takes states from one part of a sequence to the next, where every part is in a process of its
/// own and all of them run the same layers. A layer that keeps a state calls these in its forward
/// and backward pass, in the same order in every process:
///
///     model.forward(state, x, y, trace, fw::Pass::train.over(parallel));
///
/// fw::mpi::SequenceParallel is one for MPI. What a layer sends has the size of what the next one
/// expects; detail::send_state sends the columns of a cache that grows before the cache. The
/// functions change nothing at the ends of the sequence. They are called by the thread that called
/// the layer.
class SequenceParallel {
 public:
  /// No pass may refer to it any more.
  virtual ~SequenceParallel() = default;

  /// The state after the part before becomes the state before this part.
  virtual void receive_state(const detail::Object& state) = 0;
  virtual void send_state(const detail::Object& state) = 0;
  /// Gradients of states go from the part behind to the one before.
  virtual void receive_gradient(const detail::Object& state) = 0;
  virtual void send_gradient(const detail::Object& state) = 0;
};
using Relay [[deprecated("its name is SequenceParallel")]] = SequenceParallel;

namespace detail {

/// A state comes, or leaves: an array that grows after its number of columns.
inline void receive_state(SequenceParallel& parallel, const Object& state) {
  move_record(state, [&](const Object& part) { parallel.receive_state(part); });
}
inline void send_state(SequenceParallel& parallel, const Object& state) {
  move_record(state, [&](const Object& part) { parallel.send_state(part); });
}
inline void receive_gradient(SequenceParallel& parallel, const Object& state) {
  move_record(state, [&](const Object& part) { parallel.receive_gradient(part); });
}
inline void send_gradient(SequenceParallel& parallel, const Object& state) {
  move_record(state, [&](const Object& part) { parallel.send_gradient(part); });
}

}  // namespace detail

/// The purpose of a forward pass, and where the other parts of the sequence are.
class Pass {
 public:
  static const Pass infer;  ///< outputs only
  static const Pass train;  ///< stores what backward needs

  /// True if backward follows.
  constexpr bool trains() const { return trains_; }
  /// Null if the sequence is whole.
  constexpr SequenceParallel* parallel() const { return parallel_; }
  /// This pass for a part of a sequence. `parallel` must live until backward has ended.
  constexpr Pass over(SequenceParallel& parallel) const { return Pass(trains_, &parallel); }

 private:
  constexpr explicit Pass(bool trains, SequenceParallel* parallel = nullptr)
      : trains_(trains), parallel_(parallel) {}

  bool trains_;
  SequenceParallel* parallel_;
};

inline constexpr Pass Pass::infer{false};
inline constexpr Pass Pass::train{true};

}  // namespace fw
