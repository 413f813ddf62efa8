#include "operations.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <fastweights/math/parallel_for.hpp>
#include <stdexcept>

#include "compare.hpp"
#include "counters.hpp"
#include "machine.hpp"

namespace measure {

namespace {

using benchmark::State;

HeadsPointer heads_of(const Subject& s, const Shape& shape) {
  return s.make(s.d, shape.steps, shape.heads);
}
/// Heads in the middle of a stream.
HeadsPointer streaming_heads(const MakeHeads& make, Index d, Index count) {
  auto all = make(d, 1, count);
  all->fill();
  return all;
}

/// The number of tokens that cost about `flops`: at least 64 and at most `steps`.
Index tokens_for(double flops, const Subject& s, Index steps) {
  return std::min(steps, std::max<Index>(64, static_cast<Index>(flops / s.flops)));
}

/// The processor time of other() divided by that of one().
template <class F, class G> double ratio(F&& one, G&& other) {
  return machine::time_ratio(machine::processor_clock, one, other);
}

// Counters of all operations.

void report_time(State& state, const Subject& s, const Shape& shape) {
  state.SetLabel(s.fixed_size ? "fixed" : "dynamic");
  per_second(state, "ns_per_token_head", static_cast<double>(shape.heads * shape.steps) * 1e-9,
             /*inverse=*/true);
}
void report_flops(State& state, const Subject& s, const Shape& shape) {
  const double peak = s.is_double ? machine::fma_peak<double>() : machine::fma_peak<float>();
  per_second(state, "fma_peak_fraction",
             static_cast<double>(shape.heads * shape.steps) * s.flops / peak);
}
void report_bandwidth(State& state, const Subject& s, const Heads& all) {
  const std::size_t bytes = all.state_bytes() * static_cast<std::size_t>(all.count());
  per_second(state, "bandwidth_fraction",
             s.passes * static_cast<double>(bytes) / machine::in_place_bandwidth(bytes));
}

// Comparisons.

template <class S> Eigen::ArrayX<S> outputs(const Arrays& a) {
  return Eigen::Map<const Eigen::ArrayX<S>>(static_cast<const S*>(a.output), a.d * a.steps);
}

/// Throws if the outputs of the naive expression differ from the memory's.
template <class S> void assert_same(const Subject& s, Naive naive, Index steps) {
  const auto head = s.make(s.d, steps, 1);
  head->scan(0);
  const Eigen::ArrayX<S> expected = outputs<S>(head->arrays(0));
  head->clear(0);
  naive(head->arrays(0));
  const Eigen::ArrayX<S> given = outputs<S>(head->arrays(0));
  if (!((given - expected).matrix().norm() < 1e-3 * expected.matrix().norm()))
    throw std::logic_error(s.memory + ": the naive expression differs");
}

/// The speed-up of own() over each naive expression, for all heads.
template <class F> void compare_naive(State& state, const Subject& s, Heads& all, const F& own) {
  const auto compare = [&](const char* counter, Naive naive) {
    if (naive == nullptr) return;
    state.counters[counter] = ratio(own, [&] {
      for (Index h = 0; h < all.count(); ++h) naive(all.arrays(h));
    });
  };
  compare("speedup_over_eigen", s.naive_fixed);
  compare("speedup_over_dynamic_eigen", s.naive_dynamic);
}

/// The memory's time divided by that of its other forms. run(make) returns the function to time.
template <class F> void compare_forms(State& state, const Subject& s, const F& run) {
  const auto compare = [&](const char* counter, const MakeHeads& other) {
    if (other) state.counters[counter] = ratio(run(other), run(s.make));
  };
  compare("time_over_fixed", s.fixed);
  compare("time_over_ungated", s.ungated);
}

/// Compares the scan of one head.
void compare_scans(State& state, const Subject& s, Index all_steps) {
  const Index steps = tokens_for(2e8, s, all_steps);
  if (s.naive_dynamic != nullptr) {
    for (const Naive naive : {s.naive_dynamic, s.naive_fixed})
      if (naive != nullptr)
        s.is_double ? assert_same<double>(s, naive, steps) : assert_same<float>(s, naive, steps);
    const auto head = s.make(s.d, steps, 1);
    compare_naive(state, s, *head, [&] { head->scan(0); });
  }
  compare_forms(state, s, [&](const MakeHeads& make) {
    return [head = make(s.d, steps, 1)] { head->scan(0); };
  });
}

/// Compares one step of all heads.
void compare_steps(State& state, const Subject& s, Heads& all) {
  if (s.naive_dynamic != nullptr) compare_naive(state, s, all, [&] { all.step(); });
  compare_forms(state, s, [&](const MakeHeads& make) {
    return [other = streaming_heads(make, s.d, all.count())] { other->step(); };
  });
}

// The operations: each times its loop and then sets its counters.

void scan(State& state, const Subject& s, const Shape& shape) {
  const auto all = heads_of(s, shape);
  for (auto _ : state)
    for (Index h = 0; h < shape.heads; ++h) all->scan(h);
  report_time(state, s, shape);
  report_flops(state, s, shape);
  compare_scans(state, s, shape.steps);
}

void step(State& state, const Subject& s, const Shape& shape) {
  const auto all = streaming_heads(s.make, s.d, shape.heads);
  for (auto _ : state) all->step();
  report_time(state, s, shape);
  report_flops(state, s, shape);
  report_bandwidth(state, s, *all);
  compare_steps(state, s, *all);
}

void chunked_scan(State& state, const Subject& s, const Shape& shape) {
  const auto all = heads_of(s, shape);
  for (auto _ : state)
    for (Index h = 0; h < shape.heads; ++h) all->chunked_scan(h);
  report_time(state, s, shape);
  report_flops(state, s, shape);
}

void backward(State& state, const Subject& s, const Shape& shape) {
  const auto all = heads_of(s, shape);
  for (Index h = 0; h < shape.heads; ++h) all->prepare_backward(h);
  for (auto _ : state)
    for (Index h = 0; h < shape.heads; ++h) all->backward(h);
  report_time(state, s, shape);
  const Index steps = tokens_for(1e9, s, shape.steps);
  const auto head = s.make(s.d, steps, 1), forward = s.make(s.d, steps, 1);
  head->prepare_backward(0);
  state.counters["backward_over_scan"] =
      ratio([&] { forward->scan(0); }, [&] { head->backward(0); });
}

/// Heads in parallel, by wall-clock time.
template <class F> void in_parallel(State& state, Heads& all, int threads, const F& operation) {
  const Index count = all.count();
  const auto run = [&](bool parallel) { fw::parallel_for(count, parallel, operation); };
  machine::use_threads(threads);
  run(true);
  for (auto _ : state) run(true);
  per_second(state, "ns_per_token_head", static_cast<double>(count * length) * 1e-9,
             /*inverse=*/true);
  state.counters["speedup_over_one_thread"] =
      1 / machine::time_ratio(
              machine::wall_clock, [&] { run(false); }, [&] { run(true); });
  state.counters["fma_peak_over_one_thread"] = machine::fma_peak_scaling(threads);
  machine::use_threads(1);
}

void scan_in_parallel(State& state, const Subject& s, int threads) {
  const auto all = heads_of(s, {});
  in_parallel(state, *all, threads, [&](Index h) { all->scan(h); });
}

void backward_in_parallel(State& state, const Subject& s, int threads) {
  const auto all = heads_of(s, {});
  for (Index h = 0; h < heads; ++h) all->prepare_backward(h);
  in_parallel(state, *all, threads, [&](Index h) { all->backward(h); });
}

// Registration.

/// {operation}/{memory}/{scalar}/d:128/H:8/T:4096
std::string name_of(const char* operation, const Subject& s, const Shape& shape) {
  return std::string(operation) + '/' + s.memory + '/' + (s.is_double ? "double" : "float") +
         "/d:" + std::to_string(s.d) + "/H:" + std::to_string(shape.heads) +
         "/T:" + std::to_string(shape.steps) + shape.mark;
}

using Operation = void (*)(State&, const Subject&, const Shape&);

void add(const char* operation, const Subject& s, const Shape& shape, Operation run) {
  benchmark::RegisterBenchmark(name_of(operation, s, shape).c_str(), [s, run, shape](State& state) {
    run(state, s, shape);
  })->Threads(1);
}

/// The name ends as if Google Benchmark had started the threads.
void add_threads(const char* operation, const Subject& s, int threads,
                 void (*run)(State&, const Subject&, int)) {
  const std::string name = name_of(operation, s, {}) + "/threads:" + std::to_string(threads);
  benchmark::RegisterBenchmark(name.c_str(), [s, threads, run](State& state) {
    run(state, s, threads);
  })->UseRealTime();
}

}  // namespace

void add_scan(const Subject& subject, const Shape& shape) { add("scan", subject, shape, scan); }
void add_step(const Subject& subject, const Shape& shape) { add("step", subject, shape, step); }
void add_backward(const Subject& subject, const Shape& shape) {
  add("backward", subject, shape, backward);
}
void add_chunked_scan(const Subject& subject) { add("chunked_scan", subject, {}, chunked_scan); }

void add_parallel(const Subject& subject) {
  for (int threads = 2; threads <= std::max(2, machine::cores()); threads *= 2) {
    add_threads("scan", subject, threads, scan_in_parallel);
    add_threads("backward", subject, threads, backward_in_parallel);
  }
}

}  // namespace measure
