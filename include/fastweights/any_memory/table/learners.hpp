#pragma once

#include <fastweights/any_memory/memory_table.hpp>
#include <fastweights/memories/rules/kalma_memory.hpp>
#include <fastweights/memories/rules/mesa_memory.hpp>
#include <fastweights/memories/rules/miras_memory.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// Memories that learn their matrix at test time.
template <class S> void add_learners(MemoryTable<S>& table) {
  table.add("MesaMemory", [](auto& o) { return MesaMemory<S>(o.sizes()); });
  table.add("IterativeMesaMemory", [](auto& o) {
    return MesaMemory<S, Dynamic, Dynamic, ConjugateGradients>(
        o.sizes(), {o.integer("iterations", 30), o.number("epsilon", 1e-5)});
  });
  table.add("KalmaMemory", [](auto& o) {
    return KalmaMemory<S>(o.sizes(), {o.integer("iterations", 30), o.number("ridge", 0.02)});
  });
  table.add("MirasMemory", [](auto& o) { return MirasMemory<S>(o.sizes()); });
  table.add("Yaad", [](auto& o) { return Yaad<S>(o.sizes()); });
  table.add("Moneta", [](auto& o) { return Moneta<S>(o.sizes()); });
  table.add("Memora", [](auto& o) { return Memora<S>(o.sizes()); });
}

#define FASTWEIGHTS_LEARNERS(prefix, S) FASTWEIGHTS_ERASED(prefix, MesaMemory<S>)

FASTWEIGHTS_COMPILED_RULES(FASTWEIGHTS_LEARNERS);

}  // namespace fw::detail
