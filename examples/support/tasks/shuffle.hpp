#pragma once

#include <fastweights/math/random.hpp>
#include <utility>
#include <vector>

/// Puts numbers in an order that `random` draws.
inline void shuffle(std::vector<int>& numbers, fw::Random& random) {
  for (std::size_t i = numbers.size(); i > 1; --i)
    std::swap(numbers[i - 1], numbers[static_cast<std::size_t>(random.below(i))]);
}
