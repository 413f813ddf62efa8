#include <fastweights/any_memory/table.hpp>
#include <fastweights/memories/adaptors/amx_scan.hpp>

#include "operations.hpp"
#include "suite.hpp"
#include "typed_heads.hpp"

// The delta rule with AMX, for comparison with scan/delta_rule/float. Needs permission to use AMX.
namespace {

using fw::AmxPrecision;
using measure::Index;
using Memory = fw::DeltaRule<float>;

class AmxHeads final : public measure::TypedHeads<Memory> {
 public:
  AmxHeads(Index d, Index steps, Index count, AmxPrecision precision)
      : TypedHeads(Memory({.key_size = d}), fw::make_memory<float>("DeltaRule", {.key_size = d}),
                   steps, count),
        precision_(precision) {}
  void scan(Index head) override {
    const Sequence& s = sequences_[static_cast<std::size_t>(head)];
    clear(head);
    fw::amx_scan(memory_, state(head), s.inputs, s.queries, s.outputs, precision_);
  }

 private:
  const AmxPrecision precision_;
};

void add(const char* name, Index d, AmxPrecision precision) {
  measure::Subject s;
  s.memory = name;
  s.d = d;
  s.flops = 6 * static_cast<double>(d * d);
  s.make = [precision](Index size, Index steps, Index count) {
    return std::make_unique<AmxHeads>(size, steps, count, precision);
  };
  measure::add_scan(s, {});
}

}  // namespace

void add_amx() {
  if (!fw::amx_permitted()) return;
  for (const Index d : {32, 64, 128, 256}) {
    add("delta_rule_amx_bf16", d, AmxPrecision::bf16);
    add("delta_rule_amx_split", d, AmxPrecision::split);
  }
}
