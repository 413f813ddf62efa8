#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <fastweights/algorithms/backward.hpp>
#include <fastweights/algorithms/heads.hpp>
#include <fastweights/testing/sequences.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "machine.hpp"

/// \file
/// Scan, chunked scan, step and backward of any memory, registered under the name
/// {operation}/{memory}/{scalar}/d:128/H:8/T:4096/threads:1. A kind of memory is
///
///     struct Delta {
///       static constexpr const char* name = "delta_rule";
///       template <class S, int D> static auto make(fw::Index d);  // D: d or Dynamic
///       static double flops(double d);                            // of one token
///       template <class All, class W> static void naive(All& all, W& w);  // optional: see Report
///     };
///
/// Every iteration takes all heads through T tokens. Counters: ns_per_token_head;
/// fma_peak_fraction, the flops of the recurrent form against what the core can do;
/// bandwidth_fraction of a step, its states read and written once against scaling as many bytes in
/// place; speedup_over_eigen against the kind's naive expression in the same sizes and on the same
/// data. The label says whether sizes are fixed at compile time.

namespace measure {

using fw::Dynamic;
using fw::Index;

inline constexpr Index heads = 8, length = 4096;

/// One head: its state, `steps` tokens for it, and their gradients.
template <class M> struct Head {
  using Sequences = fw::testing::Sequences<M>;
  fw::StateOf<M> state;
  Sequences all;
  fw::Checkpoints<M> kept;
  Sequences gradients;

  Head(const M& m, Index steps) : state(fw::initial_state(m)), all(sequences(m, steps)) {}

  void scan(const M& m) {
    fw::set_zero(state);
    fw::scan(m, state, inputs(), queries(), outputs());
  }
  void chunked_scan(const M& m) {
    fw::set_zero(state);
    fw::chunked_scan(m, state, inputs(), queries(), outputs());
  }
  void step(const M& m) {
    const auto signature = m.signature();
    const auto first = []<class Token>(const auto& views, const auto& extents) {
      return fw::detail::token_at<Token>(views, extents, 0);
    };
    fw::step(m, state, first.template operator()<fw::WriteToken<M>>(inputs(), signature.write()),
             first.template operator()<fw::ReadToken<M>>(queries(), signature.read()),
             first.template operator()<fw::OutToken<M>>(outputs(), signature.out()));
  }

  /// What backward needs of the forward pass.
  void prepare_backward(const M& m) {
    fw::set_zero(state);
    fw::scan(m, state, inputs(), queries(), outputs(), kept);
    gradients = all;
  }
  void backward(const M& m) {
    fw::set_zero(state);  // the gradient of the final state
    fw::backward(m, kept, inputs(), queries(), fw::view<fw::OutGradSequence<M>>(gradients.outputs),
                 state, fw::view<fw::WriteGradSequence<M>>(gradients.inputs),
                 fw::view<fw::ReadGradSequence<M>>(gradients.queries));
  }

 private:
  static Sequences sequences(const M& m, Index steps) {
    fw::Random random(1);
    return fw::testing::random_sequences(m, steps, random, /*positive=*/true);
  }
  auto inputs() { return fw::view<fw::WriteSequence<M>>(all.inputs); }
  auto queries() { return fw::view<fw::ReadSequence<M>>(all.queries); }
  auto outputs() { return fw::view<fw::OutSequence<M>>(all.outputs); }
};

template <class M> std::vector<Head<M>> all_heads(const M& m, Index steps) {
  return std::vector<Head<M>>(static_cast<std::size_t>(heads), Head<M>(m, steps));
}

/// Sets a counter: `value` is of one iteration, what is shown is value / seconds, or the inverse.
inline void per_second(benchmark::State& state, const char* name, double value,
                       bool inverse = false) {
  using Counter = benchmark::Counter;
  const auto flags = inverse ? Counter::kIsIterationInvariantRate | Counter::kInvert
                             : Counter::kIsIterationInvariantRate;
  state.counters[name] = Counter(value, static_cast<Counter::Flags>(flags));
}

/// Sets the counters of a benchmark.
template <class Kind, class M> struct Report {
  benchmark::State& state;
  const M& m;
  Index steps;

  double tokens() const { return static_cast<double>(heads * steps); }

  void time() const {
    constexpr bool fixed = decltype(fw::OwnedReads<M>::query)::RowsAtCompileTime != Dynamic;
    state.SetLabel(fixed ? "fixed" : "dynamic");
    per_second(state, "ns_per_token_head", tokens() * 1e-9, /*inverse=*/true);
  }
  void flops() const {
    const double each = Kind::flops(static_cast<double>(m.signature().dk));
    per_second(state, "fma_peak_fraction",
               tokens() * each / machine::fma_peak<typename M::Scalar>());
  }
  void bandwidth(const fw::StateOf<M>& one) const {
    std::size_t bytes = 0;
    fw::for_each_leaf(
        [&](const auto& leaf) {
          if constexpr (requires { leaf.size(); })
            bytes += static_cast<std::size_t>(leaf.size()) * sizeof(*leaf.data()) * heads;
        },
        one);
    per_second(state, "bandwidth_fraction",
               2 * static_cast<double>(bytes) / machine::in_place_bandwidth(bytes));
  }
  /// Takes the heads through the kind's naive expression, outside the reported time.
  void naive(std::vector<Head<M>>& all) const {
    if constexpr (requires { Kind::naive(all[0].all, all[0].state.W); }) {
      const Index times = std::max<Index>(1, 2000 / steps);
      const double seconds = machine::best_seconds([&] {
        for (Index i = 0; i < times; ++i)
          for (auto& head : all) Kind::naive(head.all, head.state.W);
      });
      per_second(state, "speedup_over_eigen", seconds / static_cast<double>(times));
    }
  }
};

template <class Kind, class M> void scan(benchmark::State& state, const M& m) {
  auto all = all_heads(m, length);
  for (auto _ : state)
    for (auto& head : all) head.scan(m);
  const Report<Kind, M> report{state, m, length};
  report.time();
  report.flops();
  report.naive(all);
}

/// Heads in parallel, by the clock on the wall. speedup_over_one_thread is to be seen beside
/// fma_peak_over_one_thread: what the machine gives two threads that need nothing but their core.
template <class M> void scan_in_parallel(benchmark::State& state, const M& m, int threads) {
  auto all = all_heads(m, length);
  const auto run = [&](int count) {
    machine::use_threads(count);
    fw::for_each_head(heads, true, [&](Index h) { all[static_cast<std::size_t>(h)].scan(m); });
  };
  run(threads);
  for (auto _ : state) run(threads);
  per_second(state, "ns_per_token_head", static_cast<double>(heads * length) * 1e-9,
             /*inverse=*/true);
  const double alone = machine::best_wall_seconds([&] { run(1); });
  const double together = machine::best_wall_seconds([&] { run(threads); });
  state.counters["speedup_over_one_thread"] = alone / together;
  state.counters["fma_peak_over_one_thread"] = machine::fma_peak_scaling(threads);
  machine::use_threads(1);
}

template <class Kind, class M> void chunked_scan(benchmark::State& state, const M& m) {
  auto all = all_heads(m, length);
  for (auto _ : state)
    for (auto& head : all) head.chunked_scan(m);
  const Report<Kind, M> report{state, m, length};
  report.time();
  report.flops();
}

template <class Kind, class M> void step(benchmark::State& state, const M& m) {
  auto all = all_heads(m, 1);
  Head<M> used(m, length);  // a cache is full when its steps are measured
  used.scan(m);
  for (auto& head : all) head.state = used.state;
  for (auto _ : state)
    for (auto& head : all) head.step(m);
  const Report<Kind, M> report{state, m, 1};
  report.time();
  report.flops();
  report.bandwidth(all[0].state);
  report.naive(all);
}

template <class Kind, class M> void backward(benchmark::State& state, const M& m) {
  auto all = all_heads(m, length);
  for (auto& head : all) head.prepare_backward(m);
  for (auto _ : state)
    for (auto& head : all) head.backward(m);
  Report<Kind, M>{state, m, length}.time();
}

/// {operation}/{memory}/{scalar}/d:128/H:8/T:4096
template <class M>
std::string name_of(const char* operation, const char* memory, const M& m, Index steps) {
  const std::string scalar = std::is_same_v<typename M::Scalar, float> ? "float" : "double";
  return std::string(operation) + '/' + memory + '/' + scalar +
         "/d:" + std::to_string(m.signature().dk) + "/H:" + std::to_string(heads) +
         "/T:" + std::to_string(steps);
}

/// The threads are in the name where Google Benchmark puts those that it starts itself.
template <class Kind, class S> void add_parallel(Index d, int threads) {
  const auto m = Kind::template make<S, Dynamic>(d);
  const std::string name =
      name_of("scan", Kind::name, m, length) + "/threads:" + std::to_string(threads);
  benchmark::RegisterBenchmark(name.c_str(), [m, threads](benchmark::State& s) {
    scan_in_parallel(s, m, threads);
  })->UseRealTime();
}

template <class M, class F>
void add(const char* operation, const char* memory, const M& m, Index steps, F run) {
  benchmark::RegisterBenchmark(name_of(operation, memory, m, steps).c_str(),
                               [m, run](benchmark::State& s) { run(s, m); })
      ->Threads(1);
}

/// What a stream does: scan and step.
template <class Kind, class S, int D = Dynamic> void add_forward(Index d = D) {
  const auto m = Kind::template make<S, D>(d);
  using M = std::remove_cvref_t<decltype(m)>;
  add("scan", Kind::name, m, length, scan<Kind, M>);
  add("step", Kind::name, m, 1, step<Kind, M>);
}

/// What training does besides: backward and chunked scans.
template <class Kind, class S> void add_training(Index d) {
  const auto m = Kind::template make<S, Dynamic>(d);
  using M = std::remove_cvref_t<decltype(m)>;
  add("backward", Kind::name, m, length, backward<Kind, M>);
  if constexpr (fw::Chunkable<M>) add("chunked_scan", Kind::name, m, length, chunked_scan<Kind, M>);
}

/// Everything, in the sizes of the table: float fixed up to 128, dynamic from there on; double and
/// training dynamic.
template <class Kind> bool add_all() {
  Eigen::setNbThreads(1);  // its matrix products take all cores otherwise
  add_forward<Kind, float, 16>();
  add_forward<Kind, float, 32>();
  add_forward<Kind, float, 48>();
  add_forward<Kind, float, 64>();
  add_forward<Kind, float, 128>();
  add_forward<Kind, float>(256);
  for (const Index d : {64, 128}) add_forward<Kind, double>(d);
  for (const Index d : {16, 32, 64, 128, 256}) add_training<Kind, float>(d);
  for (const Index d : {64, 128}) add_training<Kind, double>(d);
  return true;
}

}  // namespace measure
