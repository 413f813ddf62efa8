// error: fastweights: parallel_scan needs a rule whose writes compose
#include <fastweights/algorithms/parallel_scan.hpp>

#include "example.hpp"

Rule<> rule;
void test(Eigen::MatrixXf& K, Eigen::MatrixXf& V, Eigen::MatrixXf& Y) {
  auto rule_state = fw::initial_state(rule);
  fw::parallel_scan(rule, rule_state, {K, V}, {K}, {Y}, 4);
}
