#include <fastweights/memories/amx_scan.hpp>

#include "measure.hpp"

// The delta rule by AMX, beside scan/delta_rule/float, where the process is permitted to use it.
namespace {

using fw::AmxPrecision;
using fw::Index;
using Memory = fw::DeltaRule<float>;

struct Delta {
  static double flops(double d) { return 6 * d * d; }
};

void scan(benchmark::State& state, const Memory& m, AmxPrecision precision) {
  auto all = measure::all_heads(m, measure::length);
  for (auto _ : state)
    for (auto& head : all)
      head.scan_by([&](const auto&... views) { fw::amx_scan(m, head.state, views..., precision); });
  const measure::Report<Delta, Memory> report{state, m, measure::length};
  report.time();
  report.flops();
}

void add(const char* name, Index d, AmxPrecision precision) {
  measure::add("scan", name, Memory(d, d), measure::length,
               [precision](benchmark::State& s, const Memory& m) { scan(s, m, precision); });
}

bool add_permitted() {
  if (!fw::amx_permitted()) return false;
  for (const Index d : {32, 64, 128, 256}) {
    add("delta_rule_amx_bf16", d, AmxPrecision::bf16);
    add("delta_rule_amx_split", d, AmxPrecision::split);
  }
  return true;
}

[[maybe_unused]] const bool added = add_permitted();

}  // namespace
