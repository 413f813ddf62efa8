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

struct Rule {
  std::string name;
  Memory memory;
  measure::Flops flops;  ///< as the doc comment of the memory has them
  /// Changes the random tokens and the state of a rule that is not stable with these; or null.
  void (*prepare)(Inputs&, State&) = nullptr;
};

/// With d_k = d_v = d.
std::vector<Rule> all_rules(Index d);

}  // namespace every_rule
