#pragma once

/// Functions shared by the files of this folder, and the checks that each file implements.

#include <cstdio>
#include <fastweights/math/random.hpp>
#include <string>

#include "counter.hpp"

using Eigen::Index;

constexpr Index sequence_length = 100;
inline Index pass_count = 100;  // of one sequence: 10⁴ steps
inline int failures = 0;

void check_memories();
void check_typed_memories();
void check_layers();
void check_models();
void check_networks();
void check_chunked_memories();

inline std::string text(const Usage& u) {
  return std::to_string(u.allocations) + " allocations, " + std::to_string(u.locks) + " locks, " +
         (can_watch_system_calls() ? std::to_string(u.system_calls) : std::string("?")) +
         " system calls";
}

inline void report(const std::string& what, const Usage& stepping, const Usage& apart,
                   const Usage& checked = {}) {
  std::printf("%-72s %s in steps; %s in writes and reads; %s in checked steps\n", what.c_str(),
              text(stepping).c_str(), text(apart).c_str(), text(checked).c_str());
  if (!stepping.none() || !apart.none() || !checked.none()) ++failures;
}
