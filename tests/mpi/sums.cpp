#include <fastweights/memories/attention/key_value_cache.hpp>
#include <fastweights/memories/rules/fast_weight_memory.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>
#include <fastweights/memories/rules/hebbian.hpp>
#include <fastweights/memories/rules/hgrn.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>
#include <fastweights/mpi/training.hpp>

#include "mpi/memories.hpp"
#include "mpi/parts.hpp"

// The first rank's cache has grown, those of others have room for one token.
static void check_broadcast_of_a_cache() {
  const fw::mpi::Ranks ranks(MPI_COMM_WORLD);
  const fw::KeyValueCache<double> m(mpi_test::sizes, {.capacity = 1});
  auto state = fw::initial_state(m);
  const Eigen::VectorXd key = Eigen::VectorXd::Ones(5), value = Eigen::VectorXd::Ones(3);
  for (int t = 0; ranks.is_first() && t < 5; ++t) fw::write(m, state, {key, value});
  fw::mpi::broadcast(state, MPI_COMM_WORLD);
  mpi_test::expect(
      state.length == 5 && state.keys.cols() == 8 && (state.keys.leftCols(5).array() == 1).all(),
      "a broadcast of a cache that has grown");
}

void mpi_test::check_sums() {
  check_memory(fw::LinearAttention<double>(sizes));
  check_memory(fw::LinearAttention<double, -1, -1, fw::AttentionNormaliser<double>>(sizes), true);
  check_memory(fw::HebbianMemory<double>(sizes, {.decay = 0.9, .rate = 0.5}));
  check_memory(fw::GatedLinearAttention<double>(sizes));
  check_memory(fw::Hgrn<double>(5));
  // These are not mergeable. The state of the last one has counters.
  check_memory(fw::FastWeightMemory<double>(sizes));
  check_memory(fw::KeyValueCache<double>(sizes, {6, fw::WhenFull::slide}));
  check_memory(fw::KeyValueCache<double>(sizes, {.capacity = 3}));  // grows
  check_broadcast_of_a_cache();
}
