#pragma once

#include <Eigen/Core>
#include <algorithm>

namespace fw::detail {

/// to += a·b in blocks of 128, whose packed copies Eigen keeps on the stack (for numbers of up to 8
/// bytes): products of any size without heap.
template <class To, class A, class B> void add_product(To&& to, const A& a, const B& b) {
  using Eigen::Index;
  constexpr Index block = 128;
  for (Index j = 0; j < b.cols(); j += block) {
    const Index cols = std::min(block, b.cols() - j);
    for (Index k = 0; k < a.cols(); k += block) {
      const Index depth = std::min(block, a.cols() - k);
      for (Index i = 0; i < a.rows(); i += block) {
        const Index rows = std::min(block, a.rows() - i);
        to.block(i, j, rows, cols).noalias() +=
            a.block(i, k, rows, depth) * b.block(k, j, depth, cols);
      }
    }
  }
}

/// Room for n numbers that the thread keeps: allocated by the first call that needs as much.
/// `Use` tells apart rooms that are needed at the same time.
template <class S, class Use> S* thread_room(Eigen::Index n) {
  thread_local Eigen::Matrix<S, Eigen::Dynamic, 1> room;
  if (room.size() < n) room.resize(n);
  return room.data();
}

}  // namespace fw::detail
