#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "support/values.hpp"

/// \file
/// Type erasure of a memory with a state and a sequence. The laws are ordinary functions of a Run
/// and compile once. Each memory type adds one class, RunOf, which calls the library's algorithms.

namespace laws {

using Eigen::Index;

/// One of the three records of a sequence.
enum class Part { inputs, queries, outputs };

/// A memory with a state and a sequence. Steps write their outputs to the sequence.
class Run {
 public:
  virtual ~Run() = default;
  virtual std::unique_ptr<Run> copy() const = 0;

  virtual void step(Index t) = 0;
  virtual void write(Index t) = 0;
  virtual void read(Index t) = 0;
  virtual bool reads_first() const = 0;
  virtual void scan() = 0;
  virtual void scan(Index first, Index count) = 0;

  virtual bool is_chunkable() const = 0;
  virtual void chunked_scan(Index chunk) = 0;
  virtual bool is_mergeable() const = 0;
  virtual void parallel_scan(Index segments) = 0;
  /// Extends one segment by the first tokens and another by the rest, then merges and applies them.
  virtual void apply_segments(Index first) = 0;

  virtual Values outputs() const = 0;
  virtual Values state() const = 0;

  virtual std::string name() const = 0;
  virtual std::vector<std::string> members(Part part) const = 0;
  /// Replaces an array by zeros of a wrong size: one extra row if `by_row` and the number of rows
  /// is not fixed, else one extra column. Returns whether it has an extra row.
  virtual bool enlarge(Part part, std::size_t member, bool by_row) = 0;
};

/// Makes a run over `steps` random tokens, from a state after `used` other tokens.
using MakeRun = std::function<std::unique_ptr<Run>(Index steps, Index used, std::uint64_t seed)>;

void step_is_write_and_read(const MakeRun& make);
void scan_is_steps(const MakeRun& make);
void chunked_is_recurrent(const MakeRun& make);
void merged_is_recurrent(const MakeRun& make);
void state_is_a_value(const MakeRun& make);
void wrong_sizes_are_refused(const MakeRun& make);

}  // namespace laws
