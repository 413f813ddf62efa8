#include <fastweights/memories/rules/comba.hpp>
#include <fastweights/memories/rules/gated_delta_rule_2.hpp>
#include <fastweights/memories/rules/low_rank_rule.hpp>

#include "mpi/memories.hpp"
#include "mpi/parts.hpp"

void mpi_test::check_low_rank_rules() {
  check_memory(fw::LowRankRule<double>(sizes));
  check_memory(fw::LowRankRule<double, -1, -1, fw::KeyValueRemoval>(sizes));
  check_memory(fw::GatedDeltaRule2<double>(sizes));
  check_memory(fw::Comba<double>(sizes));
}
