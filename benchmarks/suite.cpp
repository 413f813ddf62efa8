#include "suite.hpp"

#include <benchmark/benchmark.h>

#include <fastweights/any_memory/table.hpp>

#include "operations.hpp"
#include "rules.hpp"

// The list of benchmarks. Code that takes long to compile is elsewhere: see README.md.
namespace {

using namespace measure;

Subject subject_of(const Rule& rule, bool is_double, Index d) {
  Subject s;
  s.memory = rule.name;
  s.is_double = is_double;
  s.d = d;
  s.flops = rule.flops.at(d);
  s.passes = rule.passes;
  if (rule.naive != nullptr) {
    s.naive_dynamic = rule.naive(is_double, Dynamic);
    s.naive_fixed = rule.naive(is_double, d);
  }
  return s;
}

/// The memory of dynamic size, compared with that of fixed size.
Subject dynamic(const Rule& rule, Index d, bool is_double = false) {
  Subject s = subject_of(rule, is_double, d);
  s.make = dynamic_heads(rule.memory, is_double);
  if (!is_double) s.fixed = fixed_heads(rule.memory, d);
  if (rule.ungated != nullptr) s.ungated = dynamic_heads(rule.ungated, is_double);
  return s;
}

Subject fixed(const Rule& rule, Index d) {
  Subject s = subject_of(rule, /*is_double=*/false, d);
  s.fixed_size = true;
  s.make = fixed_heads(rule.memory, d);
  if (rule.ungated != nullptr) s.ungated = fixed_heads(rule.ungated, d);
  return s;
}

/// Inference: scan and step.
void add_forward(const Subject& s, const char* mark = "") {
  add_scan(s, {.mark = mark});
  add_step(s, {.steps = 1, .mark = mark});
}

/// The dynamic size has a mark in the benchmark's name.
void add_fixed_and_dynamic(const Rule& rule, Index d) {
  add_forward(fixed(rule, d));
  add_forward(dynamic(rule, d), "/size:dynamic");
}

/// Training: backward and chunked scans.
void add_training(const Rule& rule, Index d, bool is_double = false) {
  const Subject s = dynamic(rule, d, is_double);
  add_backward(s, {});
  if (fw::make_memory<float>(rule.memory, {.key_size = d}).can().chunkable) add_chunked_scan(s);
}

/// All sizes of the table. Float is fixed up to 128 and dynamic from 64 on; double and training are
/// dynamic.
void add_all(const Rule& rule) {
  add_forward(fixed(rule, 16));
  add_forward(fixed(rule, 32));
  add_forward(dynamic(rule, 48));
  for (const Index d : {64, 128}) add_fixed_and_dynamic(rule, d);
  add_forward(dynamic(rule, 256));
  for (const Index d : {64, 128}) add_forward(dynamic(rule, d, /*is_double=*/true));
  for (const Index d : {16, 32, 64, 128, 256}) add_training(rule, d);
  for (const Index d : {64, 128}) add_training(rule, d, /*is_double=*/true);
}

/// Fewer sizes, for all but the three main rules.
void add_some(const Rule& rule) {
  for (const Index d : {16, 64, 128, 256}) add_forward(dynamic(rule, d));
  add_forward(dynamic(rule, 64, /*is_double=*/true));
  for (const Index d : {64, 128}) add_training(rule, d);
  add_training(rule, 64, /*is_double=*/true);
}

/// Scan and backward at several lengths; steps with several numbers of heads, whose states outgrow
/// one cache after the other.
void add_scaling(const Rule& rule, Index d) {
  for (const Index t : {64, 512, 32768}) add_scan(fixed(rule, d), {.steps = t});
  for (const Index t : {64, 512}) add_backward(dynamic(rule, d), {.steps = t});
  for (const Index count : {1, 32, 128}) add_step(fixed(rule, d), {.heads = count, .steps = 1});
}

void add_everything() {
  add_continuous_memory();
  add_deferred();
  add_all(delta);
  add_some(vector_beta_delta);
  add_scaling(delta, 64);
  add_scaling(delta, 128);
  for (const Index d : {64, 128}) add_parallel(dynamic(delta, d));
  add_amx();
  add_all(gated_delta);
  add_some(kimi_delta);
  add_some(gated_sum);
  add_all(sum);
  add_some(normalised_sum);
  add_some(hebbian);
  add_some(programmer);
  add_some(cache);
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
