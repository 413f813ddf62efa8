#pragma once

#include <cmath>
#include <fastweights/core/abi.hpp>
#include <initializer_list>

/// \file
/// Time of a scan over ranks, by which mpi::scan chooses its method. docs/scaling.md
/// compares it with measurements.

namespace fw::inline FASTWEIGHTS_ABI::mpi {

/// Ways in which ranks work at the same time.
enum class Method {
  automatic,  ///< the chain, unless another is a tenth faster by mpi::seconds
  chain,      ///< head after head along the ranks, for any memory
  segments,   ///< ranks compose their writes, then scan, for mergeable memories
  heads       ///< every rank takes all tokens of some heads
};

/// Cost of messages and work. The defaults are an Ethernet of 10 Gb/s and one core.
struct Machine {
  double latency = 30e-6;             ///< α, seconds for a message, however short
  double bytes_per_second = 1.2e9;    ///< 1/β, of a rank that sends, and at the same time receives
  double flops_per_second = 4e10;     ///< 1/γ, of a rank that scans
  double new_bytes_per_second = 4e9;  ///< of memory that is used for the first time
};

/// A scan: H heads of `tokens` tokens on each of P ranks.
struct Work {
  /// H, P and T.
  double heads, ranks, tokens;
  double token_flops;  ///< of a head
  double token_bytes;  ///< inputs, queries and outputs of a head
  double state_bytes;  ///< of a head
};

/// Seconds by this model, with t the scan of one head on one rank, s the message of a state (or
/// two, as a rank between others receives and sends), and x that of a head's tokens, into new
/// memory:
///
///     chain     (H + P − 1) (t + s)
///     segments  5/2 H t + (H + P − 2) s     (2 H t + H s for P = 2)
///     heads     ⌈H / P⌉ P t + H x (P − 1) / P + 2 P α
inline double seconds(Method method, const Work& w, const Machine& m) {
  const double scan = w.tokens * w.token_flops / m.flops_per_second,
               message = m.latency + w.state_bytes / m.bytes_per_second,
               state = (w.ranks > 2 ? 2 : 1) * message,
               exchange =
                   w.tokens * w.token_bytes * (1 / m.bytes_per_second + 1 / m.new_bytes_per_second);
  if (w.ranks <= 1) return w.heads * scan;
  if (method == Method::segments)
    return (w.ranks > 2 ? 2.5 : 2.0) * w.heads * scan + (w.heads + w.ranks - 2) * state;
  if (method == Method::heads)
    return std::ceil(w.heads / w.ranks) * w.ranks * scan +
           w.heads * exchange * (w.ranks - 1) / w.ranks + 2 * w.ranks * m.latency;
  return (w.heads + w.ranks - 1) * (scan + state);
}

/// The fastest method; a tenth faster than the chain at least, which moves the least.
inline Method fastest(const Work& w, const Machine& m, bool mergeable, bool may_exchange) {
  Method best = Method::chain;
  double least = 0.9 * seconds(best, w, m);
  for (const Method each : {Method::segments, Method::heads}) {
    if (!(each == Method::segments ? mergeable : may_exchange)) continue;
    const double time = seconds(each, w, m);
    if (time >= least) continue;
    best = each;
    least = time;
  }
  return best;
}

}  // namespace fw::mpi
