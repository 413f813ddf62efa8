#pragma once

#include <fastweights/networks/operation.hpp>
#include <map>

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Operations in the order of their execution, and the buffers that they compute.
template <class S> struct Plan {
  std::vector<Node<S>> nodes;      ///< in the order of their execution
  std::vector<Index> buffer_rows;  ///< of every buffer
  std::vector<bool> is_constant;   ///< buffers of one column
  Slice in, out;                   ///< the network's input and output
  std::vector<std::size_t>
      zeroed;  ///< of a train plan: gradients that are 0 before a backward pass

  /// The first of the last operations that see every token by itself.
  std::size_t tail() const {
    std::size_t i = nodes.size();
    while (i > 0 && !nodes[i - 1].has_state) --i;
    return i;
  }

  /// The buffers that hold values of the operations before the tail.
  std::vector<bool> before_tail() const {
    std::vector<bool> holds(buffer_rows.size(), false);
    if (in.rows > 0) holds[in.buffer] = true;
    for (std::size_t i = 0, end = tail(); i < end; ++i) holds[nodes[i].out.buffer] = true;
    return holds;
  }
};

namespace detail {

// Gives buffers of equal height that are not in use at the same time one place.
template <class S> class BufferReuse {
 public:
  explicit BufferReuse(const Plan<S>& plan)
      : from_(plan), last_use_(plan.buffer_rows.size(), 0), place_(plan.buffer_rows.size(), none) {
    for (std::size_t i = 0; i < plan.nodes.size(); ++i)
      for (const Slice& in : plan.nodes[i].in) last_use_[in.buffer] = i;
    last_use_[plan.out.buffer] = plan.nodes.size();
  }

  Plan<S> result() {
    if (from_.in.rows > 0) to_.in = placed(from_.in);
    for (std::size_t i = 0; i < from_.nodes.size(); ++i) add(from_.nodes[i], i);
    to_.out = placed(from_.out);
    return std::move(to_);
  }

 private:
  static constexpr std::size_t none = std::size_t(-1);

  void add(Node<S> node, std::size_t i) {
    const std::vector<Slice> in = node.in;
    const Slice out = node.out;
    for (Slice& slice : node.in) slice = placed(slice);
    node.out = placed(out);  // before the inputs are free, so it is none of them
    for (const Slice& slice : in) release(slice.buffer, i);
    release(out.buffer, i);
    to_.nodes.push_back(std::move(node));
  }

  Slice placed(Slice slice) {
    std::size_t& place = place_[slice.buffer];
    if (place == none) place = new_place(slice.buffer);
    slice.buffer = place;
    return slice;
  }
  std::size_t new_place(std::size_t buffer) {
    const Index rows = from_.buffer_rows[buffer];
    std::vector<std::size_t>& free = free_[rows];
    if (!from_.is_constant[buffer] && !free.empty()) {
      const std::size_t place = free.back();
      free.pop_back();
      return place;
    }
    to_.buffer_rows.push_back(rows);
    to_.is_constant.push_back(from_.is_constant[buffer]);
    return to_.buffer_rows.size() - 1;
  }
  void release(std::size_t buffer, std::size_t i) {
    if (last_use_[buffer] > i || from_.is_constant[buffer] || place_[buffer] == none) return;
    free_[from_.buffer_rows[buffer]].push_back(place_[buffer]);
    place_[buffer] = none;
  }

  const Plan<S>& from_;
  Plan<S> to_;
  std::vector<std::size_t> last_use_, place_;
  std::map<Index, std::vector<std::size_t>> free_;  // places by height
};

}  // namespace detail

/// Says which operation is the first to write the gradient of each buffer in a backward pass. It
/// overwrites the gradient if it can, or else finds it 0.
template <class S> void plan_gradients(Plan<S>& plan) {
  std::vector<bool> written(plan.buffer_rows.size(), false);
  const auto is_whole = [&](const Slice& slice) {
    return slice.first == 0 && slice.rows == plan.buffer_rows[slice.buffer];
  };
  const auto write = [&](std::size_t buffer, std::vector<std::size_t>& zeroed) {
    if (!written[buffer]) zeroed.push_back(buffer);
    written[buffer] = true;
  };
  if (is_whole(plan.out)) written[plan.out.buffer] = true;  // with dy
  write(plan.out.buffer, plan.zeroed);
  for (std::size_t n = plan.nodes.size(); n-- > 0;) {
    Node<S>& node = plan.nodes[n];
    write(node.out.buffer, node.zeroed);  // nothing uses its value
    for (std::size_t i = 0; i < node.in.size(); ++i) {
      const Slice& in = node.in[i];
      if (!written[in.buffer] && i < Backward<S>::most_first && is_whole(in) &&
          node.operation->overwrites()) {
        node.first |= 1u << i;
        written[in.buffer] = true;
      }
      write(in.buffer, node.zeroed);
    }
  }
  if (plan.in.rows > 0) write(plan.in.buffer, plan.zeroed);
}

/// A plan of the same operations with fewer buffers, for passes that no backward pass follows.
template <class S> Plan<S> reuse_buffers(const Plan<S>& plan) {
  return detail::BufferReuse<S>(plan).result();
}

}  // namespace fw::networks
