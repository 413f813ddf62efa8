#pragma once

#include <fastweights/any_memory/memory_table.hpp>
#include <fastweights/memories/rules/hebbian.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>
#include <fastweights/memories/rules/programmer1991.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// Sums, the Hebbian memory and the programmer of 1991.
template <class S> void add_sums(MemoryTable<S>& table) {
  constexpr MemoryFacts positive{.positive_keys = true};
  using Normaliser = AttentionNormaliser<S>;
  table.add("LinearAttention", [](auto& o) { return LinearAttention<S>(o.sizes()); });
  table.add("CompensatedLinearAttention", [](auto& o) {
    return LinearAttention<S, Dynamic, Dynamic, NoNormaliser, CompensatedSum>(o.sizes());
  });
  table.add(
      "NormalisedLinearAttention",
      [](auto& o) {
        return LinearAttention<S, Dynamic, Dynamic, Normaliser>(o.sizes(),
                                                                {S(o.number("epsilon", 1e-5))});
      },
      positive);
  table.add("HebbianMemory", [](auto& o) {
    return HebbianMemory<S>(o.sizes(), {S(o.number("decay", 0.95)), S(o.number("rate", 0.5))});
  });
  table.add("Programmer1991", [](auto& o) { return Programmer1991<S>(o.sizes()); });
  table.add("SigmoidProgrammer1991",
            [](auto& o) { return Programmer1991<S, Dynamic, Dynamic, Sigmoid>(o.sizes()); });
  table.add("ReluProgrammer1991",
            [](auto& o) { return Programmer1991<S, Dynamic, Dynamic, Relu>(o.sizes()); });
  table.add("IdentityProgrammer1991",
            [](auto& o) { return Programmer1991<S, Dynamic, Dynamic, Identity>(o.sizes()); });
}

#define FASTWEIGHTS_SUMS(prefix, S)                                                         \
  FASTWEIGHTS_ERASED(prefix, LinearAttention<S>);                                           \
  FASTWEIGHTS_ERASED(prefix, LinearAttention<S, Dynamic, Dynamic, AttentionNormaliser<S>>); \
  FASTWEIGHTS_ERASED(prefix, HebbianMemory<S>)

FASTWEIGHTS_COMPILED_RULES(FASTWEIGHTS_SUMS);

}  // namespace fw::detail
