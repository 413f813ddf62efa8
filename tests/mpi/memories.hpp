#pragma once

namespace mpi_test {

void check_sums();
void check_delta_rules();
void check_low_rank_rules();
void check_training();

}  // namespace mpi_test
