#pragma once

#include <cstdint>
#include <fastweights/math/random.hpp>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tasks/sequence_batch.hpp"

/// \file
/// The associative retrieval task of Ba, Hinton, Mnih, Leibo, Ionescu 2016, arXiv 1610.06258,
/// section 4.1: K pairs of a letter and a digit, then two question marks, then one of the letters.
/// The answer is the digit behind that letter: of "c9k8j3f1??c" it is 9.

/// Symbols 0 to 25 are the letters, 26 to 35 the digits, 36 is the question mark.
inline constexpr int retrieval_letters = 26, retrieval_digits = 10, retrieval_mark = 36,
                     retrieval_symbols = 37;

struct RetrievalSequence {
  std::vector<int> input;  ///< 2K + 3 symbols
  int target = 0;          ///< the digit, 0 to 9
};

/// Letters without replacement, digits with.
inline RetrievalSequence draw_retrieval(fw::Random& random, int pairs) {
  if (pairs < 1 || pairs > retrieval_letters)
    throw std::invalid_argument("a retrieval sequence of " + std::to_string(pairs) +
                                " pairs, 1 to 26 expected");
  std::vector<int> letters(retrieval_letters);
  std::iota(letters.begin(), letters.end(), 0);
  RetrievalSequence sequence;
  for (int i = 0; i < pairs; ++i) {
    const auto at = static_cast<std::size_t>(i);
    std::swap(letters[at], letters[at + random.below(letters.size() - at)]);
    sequence.input.push_back(letters[at]);
    sequence.input.push_back(retrieval_letters + static_cast<int>(random.below(retrieval_digits)));
  }
  const std::size_t query = 2 * random.below(static_cast<std::uint64_t>(pairs));
  sequence.target = sequence.input[query + 1] - retrieval_letters;
  sequence.input.insert(sequence.input.end(),
                        {retrieval_mark, retrieval_mark, sequence.input[query]});
  return sequence;
}

/// As the paper writes it.
inline std::string to_text(std::span<const int> symbols) {
  std::string text;
  for (const int s : symbols) text += "abcdefghijklmnopqrstuvwxyz0123456789?"[s];
  return text;
}

/// Sequences of one length, one behind the other, with the class of each.
struct SymbolSequences {
  int length = 0;
  std::vector<int> symbols;
  std::vector<int> targets;

  std::size_t size() const { return targets.size(); }

  /// The symbols of some of the sequences, one behind the other.
  void gather(std::span<const int> which, SequenceBatch& batch) const {
    batch.symbols.clear();
    for (const int i : which) {
      const auto first = symbols.begin() + std::ptrdiff_t{i} * length;
      batch.symbols.insert(batch.symbols.end(), first, first + length);
    }
  }
};

/// `count` sequences of a seed. Other seeds give sequences to test with.
inline SymbolSequences draw_retrievals(std::uint64_t seed, long count, int pairs) {
  fw::Random random(seed);
  SymbolSequences all{2 * pairs + 3, {}, {}};
  for (long i = 0; i < count; ++i) {
    const RetrievalSequence sequence = draw_retrieval(random, pairs);
    all.symbols.insert(all.symbols.end(), sequence.input.begin(), sequence.input.end());
    all.targets.push_back(sequence.target);
  }
  return all;
}
