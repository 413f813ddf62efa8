#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <functional>
#include <memory>

/// \file
/// A benchmark's interface to a memory: several heads with random tokens. It is virtual, so that
/// the operations, the comparisons and the counters are compiled once and not for every memory
/// type.

namespace measure {

using Eigen::Dynamic;
using Eigen::Index;

inline constexpr Index heads = 8, length = 4096;

/// One head's arrays for the naive expressions, column-major with one token a column, in the
/// memory's scalar type. Arrays that the memory does not have are nullptr.
struct Arrays {
  Index d, steps;
  const void *key, *value, *beta, *decay, *query;
  void *output, *state;
};

class Heads {
 public:
  virtual ~Heads() = default;
  virtual Index count() const = 0;
  virtual std::size_t state_bytes() const = 0;  ///< of one head
  /// Throws std::logic_error if the memory has no matrix W.
  virtual Arrays arrays(Index head) = 0;
  virtual void clear(Index head) = 0;  ///< zeroes the state

  /// Sets every state to that of a stream after `length` tokens, so that a cache is full when its
  /// steps are measured.
  virtual void fill() = 0;
  /// One step of every head, with its only token. A single step is too short for a virtual call.
  virtual void step() = 0;
  /// Scans all tokens of a head, from a zero state.
  virtual void scan(Index head) = 0;
  virtual void chunked_scan(Index head) = 0;
  /// Scans a head and stores what its backward pass needs.
  virtual void prepare_backward(Index head) = 0;
  virtual void backward(Index head) = 0;
};

using HeadsPointer = std::unique_ptr<Heads>;

/// Makes `count` heads of size d × d, each with `steps` random tokens.
using MakeHeads = std::function<HeadsPointer(Index d, Index steps, Index count)>;

}  // namespace measure
