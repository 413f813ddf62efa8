#pragma once

#include <Eigen/Core>

/// \file
/// The output of a block for a whole sequence.

namespace models {

template <class Block> Eigen::MatrixXd run(const Block& block, const Eigen::MatrixXd& E) {
  auto state = block.initial_state();
  typename Block::Trace trace;
  Eigen::MatrixXd Y(E.rows(), E.cols());
  block.forward(state, E, Y, trace);
  return Y;
}

}  // namespace models
