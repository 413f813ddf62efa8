#pragma once

#include "every_rule/rules.hpp"

/// \file
/// Times a rule. Its tokens are random by their roles: keys of length 1, decays in [0.9, 1),
/// strengths in (0.05, 1), values in (0.05, 1).

namespace every_rule {

/// The processor time of scanning `length` tokens of every head. Throws std::runtime_error if the
/// numbers overflow, as the time would be of no use.
double scan_seconds(const Rule& rule, Index heads, Index length);

/// The seconds of their backward pass, after a forward pass that stored its trace.
double backward_seconds(const Rule& rule, Index heads, Index length);

/// The seconds of one such function by Eigen, over 2048 numbers in the first-level cache.
double function_seconds(Functions::Kind kind);

}  // namespace every_rule
