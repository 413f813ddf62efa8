#pragma once

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include "tasks/task_sequence.hpp"

/// \file
/// Sequential ListOps: a model reads nested lists of digits from left to right, and answers with
/// their value at the end. Nangia & Bowman 2018, arXiv 1804.06028, as in Irie et al. 2021, arXiv
/// 2106.06295, section 4.1: operators FIRST, MAX and MIN, no lists within brackets of their own.
///
///     [MAX 2 9 [MIN 4 7 ] 0 ]

inline constexpr std::array<std::string_view, 14> list_words{
    "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "[FIRST", "[MAX", "[MIN", "]"};
inline constexpr int list_first = 10, list_max = 11, list_min = 12, list_end = 13;
inline constexpr int list_answers = 10;

struct ListOpsOptions {
  long depth = 10;  ///< of the nested lists, exactly
  double value_probability = 0.75;
  int most_arguments = 5;  ///< from 2 on
  long longest = 1000;     ///< tokens; longer lists are drawn again
};

/// Draws a list and evaluates it on the way.
class ListWriter {
 public:
  ListWriter(const ListOpsOptions& o, fw::Random& random) : options_(o), random_(random) {
    if (o.depth < 1)
      throw std::invalid_argument("ListOps: depth " + std::to_string(o.depth) +
                                  ", at least 1 expected");
  }

  /// Draws lists until one has the given depth. Most lists of a large depth are rare, but short.
  TaskSequence write() {
    do {
      sequence_ = {};
      deepest_ = 0;
      value_ = list(1);
    } while (deepest_ != options_.depth || length() > options_.longest);
    sequence_.targets.back() = value_;
    return std::move(sequence_);
  }

 private:
  int below(int n) { return static_cast<int>(random_.below(static_cast<std::uint64_t>(n))); }
  long length() const { return static_cast<long>(sequence_.input.size()); }

  int list(long depth) {
    deepest_ = std::max(deepest_, depth);
    const int op = list_first + below(3), arguments = 2 + below(options_.most_arguments - 1);
    sequence_.add(op);
    int value = argument(depth);
    for (int i = 1; i < arguments; ++i) {
      const int next = argument(depth);
      if (op == list_max) value = std::max(value, next);
      if (op == list_min) value = std::min(value, next);
    }
    sequence_.add(list_end);
    return value;
  }

  // A list that is too deep or too long is drawn again as a whole, and need not be finished.
  int argument(long depth) {
    const bool lost = deepest_ > options_.depth || length() > options_.longest;
    if (!lost && random_.uniform() >= options_.value_probability) return list(depth + 1);
    const int value = below(10);
    sequence_.add(value);
    return value;
  }

  ListOpsOptions options_;
  fw::Random& random_;
  TaskSequence sequence_;
  long deepest_ = 0;
  int value_ = 0;
};

/// Sequence `index` of a seed. The only answer is at the last token.
inline TaskSequence draw_list(const ListOpsOptions& o, std::uint64_t seed, std::uint64_t index) {
  fw::Random random = task_random(seed, index);
  return ListWriter(o, random).write();
}

/// The list as text, a space after every word.
inline std::string list_text(const TaskSequence& sequence) {
  std::string text;
  for (const int token : sequence.input)
    text += std::string(list_words.at(static_cast<std::size_t>(token))) + " ";
  return text;
}
