#include <fastweights/any_memory/table.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>

#include "rules.hpp"
#include "typed_heads.hpp"

// The only memories of fixed size: those of the table in docs/performance.md.
namespace measure {

namespace {

template <class M> MakeHeads heads_of(const char* memory) {
  return [memory](Index d, Index steps, Index count) {
    const auto dynamic = fw::make_memory<float>(memory, {.key_size = d});
    return std::make_unique<TypedHeads<M>>(M({.key_size = d}), dynamic, steps, count);
  };
}

template <template <int> class Memory> MakeHeads heads_of_size(const char* memory, Index d) {
  switch (d) {
    case 16:
      return heads_of<Memory<16>>(memory);
    case 32:
      return heads_of<Memory<32>>(memory);
    case 64:
      return heads_of<Memory<64>>(memory);
    case 128:
      return heads_of<Memory<128>>(memory);
    default:
      return {};
  }
}

template <int D> using FixedSum = fw::LinearAttention<float, D, D>;
template <int D> using FixedDelta = fw::DeltaRule<float, D, D>;
template <int D> using FixedGatedDelta = fw::GatedDeltaRule<float, D, D>;

}  // namespace

MakeHeads fixed_heads(const char* memory, Index d) {
  const std::string_view name = memory;
  if (name == sum.memory) return heads_of_size<FixedSum>(memory, d);
  if (name == delta.memory) return heads_of_size<FixedDelta>(memory, d);
  if (name == gated_delta.memory) return heads_of_size<FixedGatedDelta>(memory, d);
  return {};
}

}  // namespace measure
