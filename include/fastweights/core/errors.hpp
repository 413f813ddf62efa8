#pragma once

#include <Eigen/Core>
#include <initializer_list>
#include <string>
#include <string_view>

/// \file
/// Errors of bad arguments: std::invalid_argument with the name of the thing, what was given and
/// what was expected.

namespace fw::inline FASTWEIGHTS_ABI::detail {

// Both are cold and not inlined: a check that passes costs only a comparison.

/// Throws with a text of several parts.
[[noreturn, gnu::cold]] void throw_invalid(std::initializer_list<std::string_view> parts);

/// Throws "rule: member has 3 rows, the memory expects 4".
[[noreturn, gnu::cold]] void throw_mismatch(std::string_view rule, std::string_view member,
                                            Eigen::Index given, const char* what,
                                            Eigen::Index expected, const char* who);

}  // namespace fw::detail

#ifndef FASTWEIGHTS_COMPILED
#include <fastweights/core/implementation/errors.hpp>
#endif
