#pragma once

#include <fastweights/fastweights.hpp>

/// The result of recall() in b.cpp.
float recall_in_b();

/// The sum of a memory's outputs over twenty tokens.
inline float recall() {
  using Memory = fw::FeatureMapped<fw::DeltaRule<float>, fw::L2Normalised<fw::EluPlusOne>>;
  const Memory memory(fw::DeltaRule<float>({.key_size = 4, .value_size = 3}), 4);
  fw::Random random(1);
  Eigen::MatrixXf keys(4, 20), values(3, 20), outputs(3, 20);
  random.fill(keys);
  random.fill(values);
  const Eigen::VectorXf beta = Eigen::VectorXf::Constant(20, 0.5f);
  auto state = fw::initial_state(memory);
  fw::scan(memory, state, {keys, values, beta}, {keys}, {outputs});
  return outputs.sum();
}
