#pragma once

#include <algorithm>
#include <cstdint>
#include <fastweights/math/random.hpp>
#include <string_view>
#include <vector>

/// \file
/// A sequence of tokens, with answers expected at some of them: the form of the algorithmic tasks
/// of Irie et al. 2021, arXiv 2106.06295, section 4.1, and of other tasks of tokens.

/// The target of a token without an answer.
inline constexpr int no_answer = -1;

struct TaskSequence {
  std::vector<int> input;
  std::vector<int> targets;  ///< one a token: the answer, or no_answer

  void add(int token, int target = no_answer) {
    input.push_back(token);
    targets.push_back(target);
  }
};

/// The number of answers that a sequence expects.
inline long count_answers(const TaskSequence& sequence) {
  return std::ssize(sequence.targets) -
         std::count(sequence.targets.begin(), sequence.targets.end(), no_answer);
}

/// The generator of sequence `index` of a seed, so that a batch may be drawn in parallel.
inline fw::Random task_random(std::uint64_t seed, std::uint64_t index) {
  return fw::Random(seed * 0x9e3779b97f4a7c15 + index);  // 2^64/φ: no two small pairs coincide
}
