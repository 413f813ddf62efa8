// error: fastweights: braces are missing: fw::checked_scan(memory, state, {what is written}
#include "example.hpp"

void test(Eigen::MatrixXf& K, Eigen::MatrixXf& V, Eigen::VectorXf& betas, Eigen::MatrixXf& Y) {
  fw::checked_scan(delta, state, K, V, betas, K, Y);
}
