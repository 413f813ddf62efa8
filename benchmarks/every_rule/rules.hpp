#pragma once

#include <fastweights/any_memory/any_memory.hpp>
#include <fastweights/testing/any_sequences.hpp>
#include <string>
#include <vector>

#include "flops.hpp"

/// \file
/// The rules of the table, in the order of the README's.

namespace every_rule {

using Eigen::Index;
using Memory = fw::AnyMemory<float>;
using State = fw::AnyState<float>;
using Inputs = fw::testing::AnyRecord<float>;

/// Exponentials or hyperbolic tangents of one token, which the flops leave out: squares d² + lines
/// d.
struct Functions {
  enum Kind { none, exponential, tanh } kind = none;
  double squares = 0, lines = 0;

  double at(Index d) const {
    const auto n = static_cast<double>(d);
    return (squares * n + lines) * n;
  }
};

struct Rule {
  std::string name;
  Memory memory;
  measure::Flops flops;  ///< as the doc comment of the memory has them
  Functions functions = {};
  /// Changes the random tokens and the state of a rule that is not stable with these; or null.
  void (*prepare)(Inputs&, State&) = nullptr;
};

/// With d_k = d_v = d.
std::vector<Rule> all_rules(Index d);

}  // namespace every_rule
