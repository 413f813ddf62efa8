#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <fastweights/math/random.hpp>
#include <functional>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

/// \file
/// The sorting task of Martins et al. 2022, ∞-former, arXiv 2109.00301, section 4.1: which symbols
/// are the most frequent of a long sequence, while the distribution they are drawn from drifts?

inline constexpr std::size_t sort_symbols = 20;
inline constexpr int sort_separator = 20;   ///< ends the tokens
inline constexpr int sort_vocabulary = 21;  ///< the symbols and the separator

/// All symbols in some order.
using Ranking = std::array<int, sort_symbols>;

/// A sequence to sort, with teacher forcing: the last 20 inputs, from the separator on, are
/// answered by the targets.
struct SortSequence {
  std::vector<int> input;  ///< the tokens, the separator, all targets but the last
  Ranking targets{};

  std::span<const int> tokens() const {
    return std::span(input).first(input.size() - sort_symbols);
  }
};

using SymbolCounts = std::array<long, sort_symbols>;

/// Throws std::out_of_range for a token that is no symbol.
inline SymbolCounts count_symbols(std::span<const int> tokens) {
  SymbolCounts count{};
  for (const int token : tokens) ++count.at(static_cast<std::size_t>(token));
  return count;
}

/// The symbols by falling frequency in `tokens`. Equally frequent symbols are in the order of their
/// first token. Symbols that do not occur come last, in ascending order.
inline Ranking rank_symbols(std::span<const int> tokens) {
  const SymbolCounts count = count_symbols(tokens);
  std::array<std::ptrdiff_t, sort_symbols> first{};
  for (std::size_t s = 0; s < sort_symbols; ++s)
    first[s] = std::ranges::find(tokens, static_cast<int>(s)) - tokens.begin();
  Ranking ranking{};
  std::iota(ranking.begin(), ranking.end(), 0);
  std::ranges::stable_sort(ranking, [&](int a, int b) {
    const auto i = static_cast<std::size_t>(a), j = static_cast<std::size_t>(b);
    return count[i] != count[j] ? count[i] > count[j] : first[i] < first[j];
  });
  return ranking;
}

inline SortSequence make_sort_sequence(std::vector<int> tokens) {
  const Ranking targets = rank_symbols(tokens);
  tokens.push_back(sort_separator);
  tokens.insert(tokens.end(), targets.begin(), targets.end() - 1);
  return {std::move(tokens), targets};
}

/// A distribution over the symbols before it is normalised. Whole numbers, so that a draw is exact.
using SymbolWeights = std::array<std::uint64_t, sort_symbols>;

inline SymbolWeights draw_weights(fw::Random& random) {
  SymbolWeights weights{};
  for (std::uint64_t& weight : weights) weight = 1 + random.below(9);
  return weights;
}

inline int draw_symbol(fw::Random& random, const SymbolWeights& weights) {
  std::uint64_t left = random.below(std::accumulate(weights.begin(), weights.end(), 0ULL));
  std::size_t symbol = 0;
  while (left >= weights[symbol]) left -= weights[symbol++];
  return static_cast<int>(symbol);
}

/// Token j of n is drawn from (1−r) p0 + r p1, r = (j+1)/n.
inline std::vector<int> draw_tokens(fw::Random& random, const SymbolWeights& p0,
                                    const SymbolWeights& p1, std::size_t length) {
  std::vector<int> tokens;
  tokens.reserve(length + sort_symbols);  // make_sort_sequence appends
  for (std::size_t j = 0; j < length; ++j)
    tokens.push_back(draw_symbol(random, random.below(length) <= j ? p1 : p0));
  return tokens;
}

/// Sequence `index` of a seed. It has its own generator and does not depend on other draws, so that
/// a batch may be drawn in parallel. Other seeds give sequences to test with.
inline SortSequence draw_sort_sequence(std::uint64_t seed, std::uint64_t index, long length) {
  if (length < 1)
    throw std::invalid_argument("a sequence to sort of " + std::to_string(length) +
                                " tokens, at least 1 expected");
  fw::Random random(seed * 0x9e3779b97f4a7c15 + index);  // 2^64/φ: no two small pairs coincide
  const SymbolWeights p0 = draw_weights(random), p1 = draw_weights(random);
  return make_sort_sequence(draw_tokens(random, p0, p1, static_cast<std::size_t>(length)));
}

/// The number of right outputs, position by position.
inline long count_hits(const Ranking& outputs, const Ranking& targets) {
  return std::inner_product(outputs.begin(), outputs.end(), targets.begin(), 0L, std::plus<>(),
                            std::equal_to<>());
}

/// The outputs of ranking by counts in a window: at every output the most frequent symbol of the
/// last `window` tokens that is not in the targets so far, the lowest of equally frequent ones. The
/// window does not count the separator and the targets. The order of first tokens is ignored: apart
/// from that, a window over the whole sequence is always right.
inline Ranking window_outputs(const SortSequence& sequence, std::size_t window) {
  const auto tokens = sequence.tokens();
  SymbolCounts left = count_symbols(tokens.last(std::min(window, tokens.size())));
  Ranking outputs{};
  for (std::size_t i = 0; i < sort_symbols; ++i) {
    outputs[i] = static_cast<int>(std::max_element(left.begin(), left.end()) - left.begin());
    left[static_cast<std::size_t>(sequence.targets[i])] = -1;
  }
  return outputs;
}

/// The accuracy of window_outputs over the first `sequences` of a seed. A window of 0 guesses among
/// the symbols not yet given and is right in 18 of 100, the mean of 1/(20−i). A model with that
/// window can be better: older tokens in the window say more about tokens before it, and the model
/// can learn the rule for equal counts.
inline double window_accuracy(std::size_t window, std::uint64_t seed, long sequences, long length) {
  long hits = 0;
  for (long i = 0; i < sequences; ++i) {
    const auto sequence = draw_sort_sequence(seed, static_cast<std::uint64_t>(i), length);
    hits += count_hits(window_outputs(sequence, window), sequence.targets);
  }
  return static_cast<double>(hits) / static_cast<double>(sequences * long{sort_symbols});
}
