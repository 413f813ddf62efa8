#pragma once

#include <fastweights/core/views.hpp>
#include <string>
#include <vector>

namespace reference {

/// A block of rows of a self-referential matrix, which is an array of its own in the files.
struct Block {
  std::string name;
  Eigen::Index first, rows;
};
inline std::vector<Block> self_referential_blocks(Eigen::Index dk, Eigen::Index dv) {
  return {{"W_y", 0, dv}, {"W_q", dv, dk}, {"W_k", dv + dk, dk}, {"w_b", dv + 2 * dk, 4}};
}

}  // namespace reference
