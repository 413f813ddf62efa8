#pragma once

#include <string>

namespace mpi_test {

void check_sums();
void check_table();
void check_delta_rules();
void check_low_rank_rules();
void check_training();
void check_layers();
void check_cost();
void check_complex_step();

/// Bytes that this rank has sent.
long long bytes_sent();

/// Ends by the death of a rank, after a checkpoint.
void train_and_die(const std::string& path);
/// Ends by the death of a rank, in a scan.
void scan_and_die(const std::string& method);
/// Goes on from the checkpoint.
void go_on_training(const std::string& path);

}  // namespace mpi_test
