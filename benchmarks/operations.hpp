#pragma once

#include <string>

#include "rules.hpp"

/// \file
/// Registers scan, chunked scan, step and backward of any memory under the name
/// {operation}/{memory}/{scalar}/d:128/H:8/T:4096/threads:1.
///
/// Every iteration runs all heads over T tokens. Counters, where they apply:
///
/// - ns_per_token_head;
/// - fma_peak_fraction: the flops of the recurrent form, without multiplications by decays, as a
///   fraction of the core's peak;
/// - bandwidth_fraction, for steps: the rate at which a step reads and writes its states, as a
///   fraction of the rate of scaling as many bytes in place;
/// - speedup_over_eigen, speedup_over_dynamic_eigen: compared with the rule's naive Eigen
/// expression
///   in fixed and in dynamic sizes, on the same data; scans compare one head over at most 2·10⁸
///   flops, steps compare all heads;
/// - time_over_fixed of a dynamic memory, time_over_ungated of a gated memory;
/// - backward_over_scan: the time of a backward pass over that of a scan without checkpoints;
/// - speedup_over_one_thread, and for comparison fma_peak_over_one_thread, the speed-up of
///   multiply-adds alone.
///
/// The two sides of a ratio alternate (compare.hpp). The label says whether the memory's sizes are
/// fixed at compile time.

namespace measure {

/// A memory of one scalar and size, and what it is compared with; null leaves out a comparison.
struct Subject {
  std::string memory;
  bool is_double = false;
  Index d = 0;
  bool fixed_size = false;
  double flops = 0;   ///< per token
  double passes = 2;  ///< of a step over the state: 2 if a step reads and writes all of it
  MakeHeads make;

  MakeHeads fixed;    ///< the same memory of fixed size
  MakeHeads ungated;  ///< the same memory without its gate
  Naive naive_fixed = nullptr, naive_dynamic = nullptr;
};

/// The number of heads, and of tokens per head. `mark` is appended to the benchmark's name.
struct Shape {
  Index heads = measure::heads, steps = length;
  const char* mark = "";
};

void add_scan(const Subject& subject, const Shape& shape);
void add_step(const Subject& subject, const Shape& shape);
void add_backward(const Subject& subject, const Shape& shape);
void add_chunked_scan(const Subject& subject);

/// Scan and backward on two threads, four and so on, up to the number of cores.
void add_parallel(const Subject& subject);

}  // namespace measure
