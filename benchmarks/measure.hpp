#pragma once

#include "operations.hpp"

/// \file
/// Scan, chunked scan, step and backward of any memory, registered under the name
/// {operation}/{memory}/{scalar}/d:128/H:8/T:4096/threads:1. A kind of memory is
///
///     struct Delta {
///       static constexpr const char* name = "delta_rule";
///       template <class S, int D> static auto make(fw::Index d);  // D: d or Dynamic
///       static double flops(double d);                            // of one token
///       static constexpr double passes = 2;  // of a step over the state; 2 where it is not there
///       // Optional, see rivals.hpp:
///       template <class All, class W> static void naive(All& all, W& w);
///       template <class S, int D> static auto ungated(fw::Index d);
///     };
///
/// Every iteration takes all heads through T tokens. Counters, where they apply:
///
/// - ns_per_token_head;
/// - fma_peak_fraction: the flops of the recurrent form, without fading, against what the core can
///   do;
/// - bandwidth_fraction of a step: the bytes of its states that are read and written against
///   scaling as many in place;
/// - speedup_over_eigen, speedup_over_dynamic_eigen: against the kind's naive expression in sizes
///   fixed at compile time and in dynamic ones, on the same data; for scans one head of at most
///   2·10⁸ flops, for steps all heads;
/// - time_over_fixed of a dynamic memory, time_over_ungated of a gated one;
/// - backward_over_scan: a backward pass against the scan that answers and keeps nothing;
/// - speedup_over_one_thread, and what two threads that need nothing but their core get,
///   fma_peak_over_one_thread.
///
/// The ratios are of runs that take turns (compare.hpp). The label says whether the memory's sizes
/// are fixed at compile time.

namespace measure {

/// {operation}/{memory}/{scalar}/d:128/H:8/T:4096
template <class M>
std::string name_of(const char* operation, const char* memory, const M& m, const Shape& shape) {
  const std::string scalar = std::is_same_v<typename M::Scalar, float> ? "float" : "double";
  return std::string(operation) + '/' + memory + '/' + scalar +
         "/d:" + std::to_string(m.signature().dk) + "/H:" + std::to_string(shape.heads) +
         "/T:" + std::to_string(shape.steps) + shape.mark;
}

template <class M, class F>
void add(const char* operation, const char* memory, const M& m, const Shape& shape, F run) {
  benchmark::RegisterBenchmark(name_of(operation, memory, m, shape).c_str(),
                               [m, run, shape](benchmark::State& s) { run(s, m, shape); })
      ->Threads(1);
}
template <class M, class F>
void add(const char* operation, const char* memory, const M& m, Index steps, F run) {
  add(operation, memory, m, Shape{.steps = steps},
      [run](benchmark::State& s, const M& same, const Shape&) { run(s, same); });
}

/// The threads are in the name where Google Benchmark puts those that it starts itself.
template <class M, class F>
void add_threads(const char* operation, const char* memory, const M& m, int threads, F run) {
  const std::string name =
      name_of(operation, memory, m, {}) + "/threads:" + std::to_string(threads);
  benchmark::RegisterBenchmark(name.c_str(), [m, threads, run](benchmark::State& s) {
    run(s, m, threads, length);
  })->UseRealTime();
}

/// Scan and backward on two threads, four, and so on while there are cores.
template <class Kind, class S> bool add_parallel(Index d) {
  const auto m = Kind::template make<S, Dynamic>(d);
  using M = std::remove_cvref_t<decltype(m)>;
  for (int threads = 2; threads <= std::max(2, machine::cores()); threads *= 2) {
    add_threads("scan", Kind::name, m, threads, scan_in_parallel<M>);
    add_threads("backward", Kind::name, m, threads, backward_in_parallel<M>);
  }
  return true;
}

/// What a stream does: scan and step. A memory of dynamic size knows by `Size` what to be compared
/// with; it has a mark where one of fixed size has the same name.
template <class Kind, class S, int D = Dynamic, int Size = D>
void add_forward(Index d = D, const char* mark = "") {
  const auto m = Kind::template make<S, D>(d);
  using M = std::remove_cvref_t<decltype(m)>;
  add("scan", Kind::name, m, Shape{.mark = mark}, scan_in<Kind, M, Size>);
  add("step", Kind::name, m, Shape{.steps = 1, .mark = mark}, step_in<Kind, M, Size>);
}

/// Both sizes.
template <class Kind, class S, int D> void add_fixed_and_dynamic() {
  add_forward<Kind, S, D>();
  add_forward<Kind, S, Dynamic, D>(D, "/size:dynamic");
}

/// What training does besides: backward and chunked scans.
template <class Kind, class S> void add_training(Index d) {
  const auto m = Kind::template make<S, Dynamic>(d);
  using M = std::remove_cvref_t<decltype(m)>;
  add("backward", Kind::name, m, Shape{}, backward_in<Kind, M>);
  if constexpr (fw::Chunkable<M>) add("chunked_scan", Kind::name, m, length, chunked_scan<Kind, M>);
}

/// Everything, in the sizes of the table: float fixed up to 128, dynamic from 64 on; double and
/// training dynamic.
template <class Kind> bool add_all() {
  Eigen::setNbThreads(1);  // its matrix products take all cores otherwise
  add_forward<Kind, float, 16>();
  add_forward<Kind, float, 32>();
  add_forward<Kind, float, 48>();
  add_fixed_and_dynamic<Kind, float, 64>();
  add_fixed_and_dynamic<Kind, float, 128>();
  add_forward<Kind, float, Dynamic, 256>(256);
  add_forward<Kind, double, Dynamic, 64>(64);
  add_forward<Kind, double, Dynamic, 128>(128);
  for (const Index d : {16, 32, 64, 128, 256}) add_training<Kind, float>(d);
  for (const Index d : {64, 128}) add_training<Kind, double>(d);
  return true;
}

/// A memory beside the three that everything is measured of.
template <class Kind> bool add_some() {
  Eigen::setNbThreads(1);
  add_forward<Kind, float, 16>();
  add_forward<Kind, float, 64>();
  add_forward<Kind, float, 128>();
  add_forward<Kind, float>(256);
  add_forward<Kind, double>(64);
  for (const Index d : {64, 128}) add_training<Kind, float>(d);
  add_training<Kind, double>(64);
  return true;
}

/// How scan and backward go with the length, and steps with the number of heads, whose states leave
/// one cache after the other.
template <class Kind, class S, int D> void add_scaling() {
  const auto m = Kind::template make<S, D>(D);
  const auto trained = Kind::template make<S, Dynamic>(D);
  using M = std::remove_cvref_t<decltype(m)>;
  using Trained = std::remove_cvref_t<decltype(trained)>;
  for (const Index t : {64, 512, 32768})
    add("scan", Kind::name, m, Shape{.steps = t}, scan_in<Kind, M>);
  for (const Index t : {64, 512})
    add("backward", Kind::name, trained, Shape{.steps = t}, backward_in<Kind, Trained>);
  for (const Index count : {1, 32, 128})
    add("step", Kind::name, m, Shape{.heads = count, .steps = 1}, step_in<Kind, M>);
}

}  // namespace measure
