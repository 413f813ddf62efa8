#pragma once

#include <fastweights/algorithms/heads.hpp>

#include "report.hpp"

/// \file
/// The operations that are measured: each times its loop and then sets its counters.

namespace measure {

template <class Kind, class M, int Size = size_of<M>>
void scan_in(benchmark::State& state, const M& m, const Shape& shape) {
  auto all = all_heads(m, shape.steps, shape.heads);
  for (auto _ : state)
    for (auto& head : all) head.scan(m);
  const Report<Kind, M, Size> report{state, m, shape.steps, shape.heads};
  report.time();
  report.flops();
  report.scans();
}

template <class Kind, class M, int Size = size_of<M>>
void step_in(benchmark::State& state, const M& m, const Shape& shape) {
  auto all = streaming_heads(m, shape.heads);
  for (auto _ : state)
    for (auto& head : all) head.step(m);
  const Report<Kind, M, Size> report{state, m, 1, shape.heads};
  report.time();
  report.flops();
  report.bandwidth(all[0].state);
  report.steps_of(all);
}
template <class Kind, class M> void step(benchmark::State& state, const M& m) {
  step_in<Kind>(state, m, {});
}

template <class Kind, class M> void chunked_scan(benchmark::State& state, const M& m) {
  auto all = all_heads(m, length);
  for (auto _ : state)
    for (auto& head : all) head.chunked_scan(m);
  const Report<Kind, M> report{state, m, length};
  report.time();
  report.flops();
}

template <class Kind, class M>
void backward_in(benchmark::State& state, const M& m, const Shape& shape) {
  auto all = all_heads(m, shape.steps, shape.heads);
  for (auto& head : all) head.prepare_backward(m);
  for (auto _ : state)
    for (auto& head : all) head.backward(m);
  const Report<Kind, M> report{state, m, shape.steps, shape.heads};
  report.time();
  Head<M> head(m, tokens_for(1e9, report.each(), shape.steps)), forward = head;
  head.prepare_backward(m);
  report.set("backward_over_scan", ratio([&] { forward.scan(m); }, [&] { head.backward(m); }));
}

/// Heads in parallel, by the clock on the wall.
template <class M, class F>
void in_parallel(benchmark::State& state, std::vector<Head<M>>& all, Index steps, int threads,
                 const F& operation) {
  const auto count = static_cast<Index>(all.size());
  const auto run = [&](bool parallel) {
    fw::for_each_head(count, parallel, [&](Index h) { operation(all[std::size_t(h)]); });
  };
  machine::use_threads(threads);
  run(true);
  for (auto _ : state) run(true);
  per_second(state, "ns_per_token_head", static_cast<double>(count * steps) * 1e-9,
             /*inverse=*/true);
  state.counters["speedup_over_one_thread"] =
      1 / machine::times_as_long(
              machine::wall_clock, [&] { run(false); }, [&] { run(true); });
  state.counters["fma_peak_over_one_thread"] = machine::fma_peak_scaling(threads);
  machine::use_threads(1);
}

template <class M>
void scan_in_parallel(benchmark::State& state, const M& m, int threads, Index steps = length) {
  auto all = all_heads(m, steps);
  in_parallel(state, all, steps, threads, [&](Head<M>& head) { head.scan(m); });
}

template <class M>
void backward_in_parallel(benchmark::State& state, const M& m, int threads, Index steps = length) {
  auto all = all_heads(m, steps);
  for (auto& head : all) head.prepare_backward(m);
  in_parallel(state, all, steps, threads, [&](Head<M>& head) { head.backward(m); });
}

}  // namespace measure
