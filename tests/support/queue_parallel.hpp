#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <fastweights/layers/sequence_parallel.hpp>
#include <stdexcept>
#include <vector>

/// Takes states between the parts of a sequence that one process runs one after another, and their
/// gradients back.
class QueueParallel final : public fw::SequenceParallel {
 public:
  explicit QueueParallel(std::size_t parts) : parts_(parts) {}

  /// The part that runs next.
  void go_to(std::size_t part) { part_ = part; }
  /// True if all that was sent was received.
  bool is_empty() const { return states_.empty() && gradients_.empty(); }

  void receive_state(const fw::detail::Object& state) override {
    if (part_ > 0) take(states_, state);
  }
  void send_state(const fw::detail::Object& state) override {
    if (part_ + 1 < parts_) put(states_, state);
  }
  void receive_gradient(const fw::detail::Object& state) override {
    if (part_ + 1 < parts_) take(gradients_, state);
  }
  void send_gradient(const fw::detail::Object& state) override {
    if (part_ > 0) put(gradients_, state);
  }

 private:
  using Queue = std::deque<std::vector<std::byte>>;

  template <class F> static void for_each_block(const fw::detail::Object& state, const F& f) {
    fw::detail::visit_leaves(&state, 1, [&](const fw::detail::Leaf* leaf, const auto&) {
      f(static_cast<std::byte*>(leaf->data), static_cast<std::size_t>(leaf->size()) * leaf->width);
    });
  }
  static void put(Queue& queue, const fw::detail::Object& state) {
    auto& message = queue.emplace_back();
    for_each_block(state, [&](const std::byte* data, std::size_t bytes) {
      message.insert(message.end(), data, data + bytes);
    });
  }
  static void take(Queue& queue, const fw::detail::Object& state) {
    const auto message = queue.at(0);
    queue.pop_front();
    std::size_t at = 0;
    for_each_block(state, [&](std::byte* data, std::size_t bytes) {
      if (at + bytes > message.size()) throw std::logic_error("a state is longer than its message");
      std::copy_n(message.data() + at, bytes, data);  // also without bytes
      at += bytes;
    });
    if (at != message.size()) throw std::logic_error("a state is shorter than its message");
  }

  std::size_t parts_, part_ = 0;
  Queue states_, gradients_;
};
