#include "suite.hpp"

#include <benchmark/benchmark.h>

#include "operations.hpp"
#include "rules.hpp"

// The list of benchmarks. Code that takes long to compile is elsewhere: see README.md.
namespace {

using namespace measure;

/// Whether Eigen allows a fixed-size matrix W of this size.
template <class S, int D>
constexpr bool can_be_fixed = D != Dynamic&& D* D * sizeof(S) <= EIGEN_STACK_ALLOCATION_LIMIT;

/// A memory of dynamic size is compared with the memory of fixed size `Size`.
template <class Rule, class S, int D = Dynamic, int Size = D> Subject subject(Index d = D) {
  Subject s;
  s.memory = Rule::name;
  s.is_double = std::is_same_v<S, double>;
  s.d = d;
  s.fixed_size = D != Dynamic;
  s.flops = Rule::flops(static_cast<double>(d));
  if constexpr (requires { Rule::passes; }) s.passes = Rule::passes;
  s.make = HeadsOf<Rule, S, D>::make;
  if constexpr (D == Dynamic && can_be_fixed<S, Size>) s.fixed = HeadsOf<Rule, S, Size>::make;
  if constexpr (requires { typename Rule::Ungated; })
    s.ungated = HeadsOf<typename Rule::Ungated, S, D>::make;
  if constexpr (requires { Rule::template naive<S, Dynamic>; }) {
    s.naive_dynamic = Rule::template naive<S, Dynamic>;
    if constexpr (Size != Dynamic) s.naive_fixed = Rule::template naive<S, Size>;
  }
  return s;
}

/// Inference: scan and step.
void add_forward(const Subject& s, const char* mark = "") {
  add_scan(s, {.mark = mark});
  add_step(s, {.steps = 1, .mark = mark});
}

/// The dynamic size has a mark in the benchmark's name.
template <class Rule, class S, int D> void add_fixed_and_dynamic() {
  add_forward(subject<Rule, S, D>());
  add_forward(subject<Rule, S, Dynamic, D>(D), "/size:dynamic");
}

/// Training: backward and chunked scans.
template <class Rule, class S> void add_training(Index d) {
  const Subject s = subject<Rule, S>(d);
  using M = decltype(Rule::template memory<S, Dynamic>(d));
  add_backward(s, {});
  if constexpr (fw::Chunkable<M>) add_chunked_scan(s);
}

/// All sizes of the table. Float is fixed up to 128 and dynamic from 64 on; double and training are
/// dynamic.
template <class Rule> void add_all() {
  add_forward(subject<Rule, float, 16>());
  add_forward(subject<Rule, float, 32>());
  add_forward(subject<Rule, float, 48>());
  add_fixed_and_dynamic<Rule, float, 64>();
  add_fixed_and_dynamic<Rule, float, 128>();
  add_forward(subject<Rule, float, Dynamic, 256>(256));
  add_forward(subject<Rule, double, Dynamic, 64>(64));
  add_forward(subject<Rule, double, Dynamic, 128>(128));
  for (const Index d : {16, 32, 64, 128, 256}) add_training<Rule, float>(d);
  for (const Index d : {64, 128}) add_training<Rule, double>(d);
}

/// Fewer sizes, for all but the three main rules.
template <class Rule> void add_some() {
  add_forward(subject<Rule, float, 16>());
  add_forward(subject<Rule, float, 64>());
  add_forward(subject<Rule, float, 128>());
  add_forward(subject<Rule, float>(256));
  add_forward(subject<Rule, double>(64));
  for (const Index d : {64, 128}) add_training<Rule, float>(d);
  add_training<Rule, double>(64);
}

/// Scan and backward at several lengths; steps with several numbers of heads, whose states outgrow
/// one cache after the other.
template <class Rule, class S, int D> void add_scaling() {
  const Subject fixed = subject<Rule, S, D>(), dynamic = subject<Rule, S>(D);
  for (const Index t : {64, 512, 32768}) add_scan(fixed, {.steps = t});
  for (const Index t : {64, 512}) add_backward(dynamic, {.steps = t});
  for (const Index count : {1, 32, 128}) add_step(fixed, {.heads = count, .steps = 1});
}

void add_everything() {
  add_continuous_memory();
  add_deferred();
  add_all<Delta>();
  add_some<VectorBetaDelta>();
  add_scaling<Delta, float, 64>();
  add_scaling<Delta, float, 128>();
  for (const Index d : {64, 128}) add_parallel(subject<Delta, float>(d));
  add_amx();
  add_all<GatedDelta>();
  add_some<KimiDelta>();
  add_some<GatedSum>();
  add_all<Sum>();
  add_some<NormalisedSum>();
  add_some<Hebbian>();
  add_some<Programmer>();
  add_some<Cache>();
}

}  // namespace

int main(int count, char** arguments) {
  Eigen::setNbThreads(1);  // otherwise its matrix products use all cores
  add_everything();
  benchmark::Initialize(&count, arguments);
  if (benchmark::ReportUnrecognizedArguments(count, arguments)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
