#pragma once

#include <fastweights/fastweights.hpp>

/// What b.cpp computes with its own copy of the library.
float recalled_in_b();

/// What a memory recalls of twenty tokens.
inline float recalled() {
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
