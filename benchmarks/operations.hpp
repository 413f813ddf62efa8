#pragma once

#include <string>

#include "heads.hpp"

/// \file
/// Registers scan, chunked scan, step and backward of any memory under the name
/// {operation}/{memory}/{scalar}/d:128/H:8/T:4096/threads:1.
///
/// Every iteration takes all heads through T tokens. Counters, where they apply:
///
/// - ns_per_token_head;
/// - fma_peak_fraction: the flops of the recurrent form, without multiplying by decays, over the
///   peak of the core;
/// - bandwidth_fraction of a step: the bytes of its states that are read and written, over scaling
///   as many bytes in place;
/// - speedup_over_eigen, speedup_over_dynamic_eigen: against the rule's naive Eigen expression in
///   sizes fixed at compile time and in dynamic ones, on the same data; for scans one head of at
///   most 2·10⁸ flops, for steps all heads;
/// - time_over_fixed of a dynamic memory, time_over_ungated of a gated one;
/// - backward_over_scan: a backward pass over the scan that keeps no checkpoints;
/// - speedup_over_one_thread, and fma_peak_over_one_thread, what the same threads gain in
///   multiply-adds alone.
///
/// The ratios are of runs that take turns (compare.hpp). The label says whether the memory's sizes
/// are fixed at compile time.

namespace measure {

/// The rule's equation in plain Eigen, over all tokens of a head.
using Naive = void (*)(const Arrays& head);

/// A memory of one scalar and size, and what it is compared with (nullptr: nothing).
struct Subject {
  std::string memory;
  bool is_double = false;
  Index d = 0;
  bool fixed_size = false;
  double flops = 0;   ///< of one token
  double passes = 2;  ///< of a step over the state: 2 if it reads and writes all of it
  MakeHeads make = nullptr;

  MakeHeads fixed = nullptr;    ///< the same memory of fixed size
  MakeHeads ungated = nullptr;  ///< the same memory without its gate
  Naive naive_fixed = nullptr, naive_dynamic = nullptr;
};

/// The number of heads and of tokens per head. The mark is appended to the benchmark's name.
struct Shape {
  Index heads = measure::heads, steps = length;
  const char* mark = "";
};

void add_scan(const Subject& subject, const Shape& shape);
void add_step(const Subject& subject, const Shape& shape);
void add_backward(const Subject& subject, const Shape& shape);
void add_chunked_scan(const Subject& subject);

/// Scan and backward on two threads, four, and so on while there are cores.
void add_parallel(const Subject& subject);

}  // namespace measure
