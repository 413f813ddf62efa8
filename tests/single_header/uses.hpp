#pragma once

#include <array>
#include <filesystem>

#include "fastweights.hpp"

// One function for each part of the library.

/// In b.cpp.
std::array<double, 2> steps_in_b();

/// In training.cpp: a layer's loss before and after five steps of training, and the loss of the
/// layer that was saved to `path` and loaded again.
std::array<double, 3> training(const std::filesystem::path& path);

/// Scan and backward of a delta rule with mapped keys: the answers and the keys' gradient.
inline std::array<double, 2> scan_and_backward() {
  using Memory = fw::DeltaRule<double>;
  const Memory memory({.key_size = 4, .value_size = 3});
  fw::Random random(1);
  Eigen::MatrixXd keys(4, 20), values(3, 20), outputs(3, 20);
  random.fill(keys);
  random.fill(values);
  fw::L2Normalised<fw::EluPlusOne>().map(Eigen::MatrixXd(keys), keys);
  const Eigen::VectorXd beta = Eigen::VectorXd::Constant(20, 0.5);
  auto state = fw::initial_state(memory);
  fw::Checkpoints<Memory> checkpoints;
  fw::scan(memory, state, {keys, values, beta}, {keys}, {outputs}, checkpoints);
  auto dstate = fw::zero_gradient(memory);
  Eigen::MatrixXd dkeys = 0 * keys, dvalues = 0 * values;
  Eigen::VectorXd dbeta = 0 * beta;
  Eigen::MatrixXd dqueries = 0 * keys;
  fw::backward(memory, checkpoints, {keys, values, beta}, {keys}, {outputs}, dstate,
               {dkeys, dvalues, dbeta}, {dqueries});
  return {outputs.norm(), dkeys.norm()};
}

/// Steps of a deferred rule and of a key-value cache.
inline std::array<double, 2> steps() {
  const fw::Deferred<fw::LinearAttention<double>, 4> deferred(
      fw::LinearAttention<double>({.key_size = 3}));
  const fw::KeyValueCache<double> cache({.key_size = 3}, {.capacity = 6});
  auto deferred_state = fw::initial_state(deferred);
  auto cache_state = fw::initial_state(cache);
  const Eigen::Vector3d key(1, 2, 3);
  Eigen::Vector3d value(3, -1, 2);
  Eigen::Vector3d first, second;
  for (int i = 0; i < 6; ++i) {
    fw::step(deferred, deferred_state, {key, value}, {key}, {first});
    fw::step(cache, cache_state, {key, value}, {key}, {second});
    value(0) -= 1;
  }
  return {first.norm(), second.norm()};
}

/// A continuous memory after one chunk.
inline std::array<double, 1> continuous() {
  using Basis = fw::RectangularBasis<double>;
  using Density = fw::GibbsDensity<double>;
  const Basis basis(8);
  const fw::ContinuousMemory<double, Density, Basis> memory(
      {.d = 3,
       .samples = 16,
       .contraction = fw::Contraction::fixed(0.75),
       .regression = {.ridge = 1}},
      basis, Density(basis));
  auto state = fw::initial_state(memory);
  fw::Random random(2);
  Eigen::MatrixXd chunk(3, 32), outputs(3, 2);
  random.fill(chunk);
  const Eigen::MatrixXd queries = chunk.rightCols(2);
  fw::write(memory, state, {chunk});
  fw::read(memory, state, {queries}, {outputs});
  return {outputs.norm()};
}
