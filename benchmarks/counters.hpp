#pragma once

#include <benchmark/benchmark.h>

namespace measure {

/// Sets a counter that shows value / seconds, or the inverse. `value` is that of one iteration.
inline void per_second(benchmark::State& state, const char* name, double value,
                       bool inverse = false) {
  using Counter = benchmark::Counter;
  const auto flags = inverse ? Counter::kIsIterationInvariantRate | Counter::kInvert
                             : Counter::kIsIterationInvariantRate;
  state.counters[name] = Counter(value, static_cast<Counter::Flags>(flags));
}

}  // namespace measure
