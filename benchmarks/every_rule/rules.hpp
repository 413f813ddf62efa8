#pragma once

#include <Eigen/Core>
#include <functional>
#include <string>
#include <vector>

/// \file
/// The rules of the table, whatever the types of their memories. Each source of this folder adds
/// some of them, in the order of the README's table; together they would compile for minutes.

namespace every_rule {

using Eigen::Index;

/// Of one token with d_k = d_v = d: cubes d³ + squares d² + lines d.
struct Flops {
  double squares = 0, cubes = 0, lines = 0;
  std::string also = "";  ///< what is not counted

  double at(Index d) const;
  std::string text() const;
};

struct Rule {
  std::string name;
  Flops flops;  ///< as the doc comment of the memory has them
  /// The processor time of scanning `length` tokens of every head.
  std::function<double(Index heads, Index length)> seconds;
  /// The same of their backward pass; empty for rules whose gradients go token by token.
  std::function<double(Index heads, Index length)> backward_seconds;
};
using Rules = std::vector<Rule>;

void add_sums_and_deltas(Index d, Rules& rules);
void add_gated(Index d, Rules& rules);
void add_delta_family(Index d, Rules& rules);
void add_learners(Index d, Rules& rules);
void add_windows(Index d, Rules& rules);
void add_models(Index d, Rules& rules);
void add_state_spaces(Index d, Rules& rules);
void add_features(Index d, Rules& rules);
void add_recurrent(Index d, Rules& rules);

}  // namespace every_rule
