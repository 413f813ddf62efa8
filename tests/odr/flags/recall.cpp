// One of the functions of recall.hpp; the macro RECALL is its name.
#include "recall.hpp"

#include <fastweights/algorithms/scan.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>

float RECALL(const float* keys, const float* values, int tokens) {
  const fw::DeltaRule<float> memory({.key_size = 17, .value_size = 19});
  auto state = fw::initial_state(memory);
  const Eigen::Map<const Eigen::MatrixXf> K(keys, 17, tokens), V(values, 19, tokens);
  const Eigen::VectorXf beta = Eigen::VectorXf::Constant(tokens, 0.5f);
  Eigen::MatrixXf Y(19, tokens);
  fw::scan(memory, state, {K, V, beta}, {K}, {Y});
  return Y.sum();
}
