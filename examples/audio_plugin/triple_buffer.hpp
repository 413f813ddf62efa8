#pragma once

#include <array>
#include <atomic>

/// The newest value of one writing thread for one reading thread. Neither waits for the other, and
/// neither allocates if T's copy assignment does not.
///
/// There are three values. One belongs to the writer and one to the reader. The third is in the
/// middle, and is the newest if `is_new` is set. Each side exchanges its own for the middle one in
/// one atomic operation. Release and acquire: the reader sees what the writer wrote before
/// publish(), and the writer reuses a value only after the reader has left it.
template <class T> class TripleBuffer {
 public:
  explicit TripleBuffer(const T& initial) : values_{initial, initial, initial} {}

  /// The writer sets back(), any part of which may be old, and publishes it.
  T& back() { return values_[back_]; }
  void publish() { back_ = middle_.exchange(back_ | is_new, std::memory_order_acq_rel) & which; }

  /// The reader takes what was published last, if that is new. front() is the value it took last.
  bool take() {
    if ((middle_.load(std::memory_order_relaxed) & is_new) == 0) return false;
    front_ = middle_.exchange(front_, std::memory_order_acq_rel) & which;
    return true;
  }
  const T& front() const { return values_[front_]; }

 private:
  static constexpr unsigned which = 3, is_new = 4;
  static_assert(std::atomic<unsigned>::is_always_lock_free);

  std::array<T, 3> values_;
  // A cache line each, so that the threads do not wait for each other's lines.
  alignas(64) unsigned back_ = 0;
  alignas(64) std::atomic<unsigned> middle_{1};
  alignas(64) unsigned front_ = 2;
};
