#include <fastweights/memories/adaptors/amx_scan.hpp>

#include "heads_of.hpp"
#include "operations.hpp"
#include "suite.hpp"

// The delta rule with AMX, for comparison with scan/delta_rule/float. Needs permission to use AMX.
namespace {

using fw::AmxPrecision;
using measure::Index;
using Memory = fw::DeltaRule<float>;

template <AmxPrecision precision> class AmxHeads final : public measure::ForwardHeads<Memory> {
 public:
  using ForwardHeads::ForwardHeads;
  void scan(Index head) override {
    Head& h = at(head);
    fw::set_zero(h.state);
    fw::amx_scan(memory_, h.state, h.inputs(), h.queries(), h.outputs(), precision);
  }
  static measure::HeadsPointer make(Index d, Index steps, Index count) {
    return std::make_unique<AmxHeads>(Memory({.key_size = d}), steps, count);
  }
};

void add(const char* name, Index d, measure::MakeHeads make) {
  measure::Subject s;
  s.memory = name;
  s.d = d;
  s.flops = 6 * static_cast<double>(d * d);
  s.make = make;
  measure::add_scan(s, {});
}

}  // namespace

void add_amx() {
  if (!fw::amx_permitted()) return;
  for (const Index d : {32, 64, 128, 256}) {
    add("delta_rule_amx_bf16", d, AmxHeads<AmxPrecision::bf16>::make);
    add("delta_rule_amx_split", d, AmxHeads<AmxPrecision::split>::make);
  }
}
