#pragma once

#include <algorithm>
#include <fastweights/math/random.hpp>
#include <functional>
#include <stdexcept>

#include "tasks/task_sequence.hpp"
#include "tasks/text.hpp"

/// \file
/// Windows of a text as sequences: every character is answered by the next one.

inline TaskSequence text_window(std::span<const int> symbols, std::size_t start,
                                std::size_t length) {
  const auto window = symbols.subspan(start, length), next = symbols.subspan(start + 1, length);
  return {{window.begin(), window.end()}, {next.begin(), next.end()}};
}

/// Throws std::invalid_argument where a part of the text is shorter than a window.
inline void check_text_length(const Text& text, long length) {
  const std::size_t shortest = std::min(text.training().size(), text.validation().size());
  if (shortest <= static_cast<std::size_t>(length))
    throw std::invalid_argument("the text is too short: " + std::to_string(shortest) +
                                " characters to train or validate on, more than " +
                                std::to_string(length) + " expected");
}

/// The starts of windows of the training text, drawn by `random`.
inline std::vector<std::size_t> draw_starts(const Text& text, long batch, long length,
                                            fw::Random& random) {
  std::vector<std::size_t> starts;
  const auto bound = text.training().size() - static_cast<std::size_t>(length);
  for (long i = 0; i < batch; ++i) starts.push_back(random.below(bound));
  return starts;
}

/// The starts of consecutive windows, at most `windows` of them evenly spread.
inline std::vector<std::size_t> spread_starts(std::span<const int> symbols, long length,
                                              std::size_t windows) {
  const auto each = static_cast<std::size_t>(length);
  const std::size_t all = (symbols.size() - 1) / each, used = std::min(windows, all);
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i < used; ++i) starts.push_back(i * all / used * each);
  return starts;
}
