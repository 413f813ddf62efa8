#pragma once

#include <fastweights/memories/rules/delta_rule.hpp>

using Memory = fw::DeltaRule<float, 4, 19>;

/// Reads the state with a key of ones, in callee.cpp.
float read_with_ones(const Memory& memory, const fw::StateOf<Memory>& state);
