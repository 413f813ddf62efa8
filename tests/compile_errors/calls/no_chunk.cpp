// error: fastweights: chunked_scan needs a rule with a chunkwise form
#include "example.hpp"

Rule<> rule;
void test(Eigen::MatrixXf& K, Eigen::MatrixXf& V, Eigen::MatrixXf& Y) {
  auto rule_state = fw::initial_state(rule);
  fw::chunked_scan(rule, rule_state, {K, V}, {K}, {Y});
}
