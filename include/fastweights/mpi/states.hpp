#pragma once

#include <algorithm>
#include <fastweights/core/leaves.hpp>
#include <fastweights/mpi/ranks.hpp>
#include <list>
#include <span>
#include <string>
#include <vector>

/// \file
/// Messages with the numbers of a record, such as a state.

namespace fw::inline FASTWEIGHTS_ABI::mpi::detail {

using fw::detail::Object;

// Calls f(address, bytes) for the numbers of a record.
template <class F> void for_each_block(const Object& record, const F& f) {
  fw::detail::visit_leaves(&record, 1, [&](const fw::detail::Leaf* leaf, const auto&) {
    f(static_cast<std::byte*>(leaf->data), leaf->size() * static_cast<Index>(leaf->width));
  });
}

inline Index bytes_of(const Object& record) {
  Index sum = 0;
  for_each_block(record, [&](const std::byte*, Index bytes) { sum += bytes; });
  return sum;
}
template <Record R> Index bytes_of(const R& record) { return bytes_of(fw::detail::object(record)); }

// The shapes of all arrays of a record, by their names: what ranks have to agree on. The columns of
// arrays that grow are sent before their numbers.
inline std::string shapes_of(const Object& record) {
  std::string text;
  fw::detail::visit_leaves(&record, 1, [&](const fw::detail::Leaf* leaf, const auto& path) {
    text += (text.empty() ? "" : ", ") + path.text() + " " + std::to_string(leaf->rows) + "x" +
            (leaf->grows() ? "any" : std::to_string(leaf->cols)) + " of " +
            std::to_string(leaf->width) + " bytes";
  });
  return text;
}
template <Record R> std::string shapes_of(const R& record) {
  return shapes_of(fw::detail::object(record));
}

inline void store(const Object& record, std::vector<std::byte>& buffer) {
  buffer.clear();
  for_each_block(record, [&](const std::byte* from, Index bytes) {
    buffer.insert(buffer.end(), from, from + bytes);
  });
}

inline void send_numbers(const Ranks& ranks, const Object& record, int to,
                         std::vector<std::byte>& buffer) {
  if (to == MPI_PROC_NULL) return;
  store(record, buffer);
  ranks.send(buffer.data(), std::ssize(buffer), to);
}
inline void send(const Ranks& ranks, const Object& record, int to, std::vector<std::byte>& buffer) {
  fw::detail::move_record(record,
                          [&](const Object& part) { send_numbers(ranks, part, to, buffer); });
}

inline void load(const Object& record, const std::byte* from) {
  for_each_block(record, [&](std::byte* to, Index bytes) {
    std::copy_n(from, bytes, to);
    from += bytes;
  });
}

inline void receive_numbers(const Ranks& ranks, const Object& record, int from,
                            std::vector<std::byte>& buffer) {
  if (from == MPI_PROC_NULL) return;
  buffer.resize(static_cast<std::size_t>(bytes_of(record)));
  ranks.receive(buffer.data(), std::ssize(buffer), from);
  load(record, buffer.data());
}
inline void receive(const Ranks& ranks, const Object& record, int from,
                    std::vector<std::byte>& buffer) {
  fw::detail::move_record(record,
                          [&](const Object& part) { receive_numbers(ranks, part, from, buffer); });
}

// Sends what it copies; the copies live until wait().
class Outbox {
 public:
  explicit Outbox(const Ranks& ranks) : ranks_(ranks) {}
  ~Outbox() {
    if (!messages_.empty()) abandon(messages_);
  }
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  void send(const Object& record, int to) {
    Message& message = messages_.emplace_back();
    store(record, message.bytes);
    message.requests = ranks_.begin_to_send(message.bytes.data(), std::ssize(message.bytes), to);
  }
  // Tests every message, which lets MPI move it, and forgets those that have ended.
  void progress() {
    messages_.remove_if([](Message& each) { return ended(each.requests, false); });
  }
  void wait() {
    for (Message& each : messages_) ended(each.requests, true);
    messages_.clear();
  }

 private:
  struct Message {
    std::vector<std::byte> bytes;
    std::vector<MPI_Request> requests;
  };

  const Ranks& ranks_;
  std::list<Message> messages_;
};

// A message per state: ranks may differ in how many they have at hand.
template <class State>
void send_states(const Ranks& ranks, std::span<const State> states, int to,
                 std::vector<std::byte>& buffer) {
  for (const State& state : states) send(ranks, fw::detail::object(state), to, buffer);
}
template <class State>
void receive_states(const Ranks& ranks, std::span<State> states, int from,
                    std::vector<std::byte>& buffer) {
  for (State& state : states) receive(ranks, fw::detail::object(state), from, buffer);
}

}  // namespace fw::mpi::detail
