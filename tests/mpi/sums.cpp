#include <fastweights/memories/attention/key_value_cache.hpp>
#include <fastweights/memories/rules/fast_weight_memory.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/hebbian.hpp>
#include <fastweights/memories/rules/hgrn.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>

#include "mpi/memories.hpp"
#include "mpi/parts.hpp"

void mpi_test::check_sums() {
  check_memory(fw::LinearAttention<double>(sizes));
  check_memory(fw::LinearAttention<double, -1, -1, fw::AttentionNormaliser<double>>(sizes), true);
  check_memory(fw::HebbianMemory<double>(sizes, {.decay = 0.9, .rate = 0.5}));
  check_memory(fw::GatedLinearAttention<double>(sizes));
  check_memory(fw::Hgrn<double>(5));
  // These are not mergeable. The state of the last one has counters.
  check_memory(fw::FastWeightMemory<double>(sizes));
  check_memory(fw::KeyValueCache<double>(sizes, {.capacity = 6}));
}
