#pragma once

#include <benchmark/benchmark.h>

#include <string>
#include <type_traits>
#include <vector>

#include "rivals.hpp"

/// \file
/// The counters of a benchmark. They are set after the loop that is timed.

namespace measure {

/// What a benchmark takes besides a memory. The mark ends the name.
struct Shape {
  Index heads = measure::heads, steps = length;
  const char* mark = "";
};

/// Sets a counter: `value` is of one iteration, what is shown is value / seconds, or the inverse.
inline void per_second(benchmark::State& state, const char* name, double value,
                       bool inverse = false) {
  using Counter = benchmark::Counter;
  const auto flags = inverse ? Counter::kIsIterationInvariantRate | Counter::kInvert
                             : Counter::kIsIterationInvariantRate;
  state.counters[name] = Counter(value, static_cast<Counter::Flags>(flags));
}

/// `Size` is what Eigen's fixed sizes are, where the memory's own may be dynamic.
template <class Kind, class M, int Size = size_of<M>> struct Report {
  using S = typename M::Scalar;
  benchmark::State& state;
  const M& m;
  Index steps;
  Index count = heads;

  double tokens() const { return static_cast<double>(count * steps); }
  double each() const { return Kind::flops(static_cast<double>(m.signature().dk)); }
  void set(const char* name, double value) const { state.counters[name] = value; }

  void time() const {
    state.SetLabel(size_of<M> == Dynamic ? "dynamic" : "fixed");
    per_second(state, "ns_per_token_head", tokens() * 1e-9, /*inverse=*/true);
  }
  void flops() const {
    per_second(state, "fma_peak_fraction", tokens() * each() / machine::fma_peak<S>());
  }
  static constexpr double passes() {
    if constexpr (requires { Kind::passes; }) return Kind::passes;
    return 2;  // read and written
  }
  void bandwidth(const fw::StateOf<M>& one) const {
    std::size_t bytes = 0;
    fw::for_each_leaf(
        [&](const auto& leaf) {
          if constexpr (requires { leaf.data(); })
            bytes += static_cast<std::size_t>(leaf.size()) * sizeof(*leaf.data());
        },
        one);
    bytes *= static_cast<std::size_t>(count);
    per_second(state, "bandwidth_fraction",
               passes() * static_cast<double>(bytes) / machine::in_place_bandwidth(bytes));
  }

  /// A scan of one head against the rivals' of it.
  void scans() const {
    const Index t = tokens_for(2e8, each(), steps);
    if constexpr (Naive<Kind, M>) {
      Head<M> head(m, t);
      assert_same<Kind, Dynamic>(m, head);
      if constexpr (Size != Dynamic) assert_same<Kind, Size>(m, head);
      naive([&] { head.scan(m); }, [&]<int D> { run_naive<Kind, D>(head); });
    }
    against([&](const auto& memory) { return scanning(memory, t); });
  }
  /// A step of all heads against the rivals' of them.
  void steps_of(std::vector<Head<M>>& all) const {
    if constexpr (Naive<Kind, M>) {
      const auto own = [&] {
        for (auto& head : all) head.step(m);
      };
      naive(own, [&]<int D> {
        for (auto& head : all) run_naive<Kind, D>(head);
      });
    }
    against([&](const auto& memory) { return stepping(memory, count); });
  }

 private:
  template <class F, class G> void naive(const F& own, const G& eigen) const {
    if constexpr (Size != Dynamic)
      set("speedup_over_eigen", ratio(own, [&] { eigen.template operator()<Size>(); }));
    set("speedup_over_dynamic_eigen", ratio(own, [&] { eigen.template operator()<Dynamic>(); }));
  }
  template <class F> void against(const F& run) const {
    if constexpr (size_of<M> == Dynamic && can_be_fixed<S, Size>)
      set("time_over_fixed", ratio(run(Kind::template make<S, Size>(Size)), run(m)));
    if constexpr (requires { Kind::template ungated<S, size_of<M>>(Size); })
      set("time_over_ungated",
          ratio(run(Kind::template ungated<S, size_of<M>>(m.signature().dk)), run(m)));
  }
};

}  // namespace measure
