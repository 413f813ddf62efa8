#pragma once

#include <fastweights/layers/parameters.hpp>
#include <fastweights/math/random.hpp>
#include <fastweights/networks/network.hpp>
#include <utility>
#include <vector>

/// \file
/// Small models with seven symbols, to compare their logits.

namespace seven_symbols {

using Network = fw::networks::Network<float>;

/// The network with random weights, always the same.
inline Network drawn(Network network) {
  fw::Random random(3);
  fw::initialise(network, random);
  return network;
}

/// The logits of five tokens, from the first state.
inline Eigen::MatrixXf logits(const Network& network) {
  const std::vector<int> ids{1, 6, 0, 3, 5};
  auto state = network.initial_state();
  Network::Trace trace;
  Eigen::MatrixXf y(7, 5);
  network.forward(state, fw::Symbols(ids), y, trace);
  return y;
}

}  // namespace seven_symbols
