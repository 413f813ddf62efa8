// A user's program with the optional part for MPI, which runs as one process without mpirun: scans
// two heads.

#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/mpi/scan.hpp>

int main(int argc, char** argv) {
  int given = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &given);
  const fw::DeltaRule<float> memory({.key_size = 4});
  std::vector states(2, fw::initial_state(memory));
  const Eigen::MatrixXf x = Eigen::MatrixXf::Identity(4, 4).replicate(1, 2);
  const Eigen::RowVectorXf beta = Eigen::RowVectorXf::Ones(8);
  Eigen::MatrixXf y(4, 8);
  fw::mpi::scan(memory, std::span(states), {x, x, beta}, {x}, {y}, MPI_COMM_WORLD);
  MPI_Finalize();
  return y.isApprox(x) ? 0 : 1;
}
