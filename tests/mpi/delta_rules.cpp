#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_product.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>

#include "mpi/memories.hpp"
#include "mpi/parts.hpp"

void mpi_test::check_delta_rules() {
  check_memory(fw::DeltaRule<double>(sizes));
  check_memory(fw::DeltaRule<double>({.key_size = 65, .value_size = 33}));
  check_memory(fw::GatedDeltaRule<double>(sizes));
  check_memory(fw::GatedDeltaRule<double, -1, -1, fw::KeyValueBetaVectorDecay>(sizes));
  check_memory(fw::GatedDeltaProduct<double, 2>(sizes));
}
