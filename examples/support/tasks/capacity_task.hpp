#pragma once

#include <cmath>
#include <fastweights/math/random.hpp>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tasks/shuffle.hpp"

/// Pairs of a key and a value, then queries: keys, each answered by its last value.
struct RecallSequence {
  std::vector<int> keys, values;
  std::vector<int> queries, answers;
};

/// The synthetic tasks of Schlag, Irie, Schmidhuber 2021, arXiv 2102.11174, section 6.1, over S
/// keys and S values. Setting 1: every key and every value once. Setting 2: 2S pairs, drawn with
/// replacement. As in the authors' code, sequences of an evaluation have S pairs in both settings
/// and one query for every distinct key, at most 200 of them.
class RecallTask {
 public:
  RecallTask(int symbols, bool repeats) : symbols_(symbols), repeats_(repeats) {
    if (symbols < 1)
      throw std::invalid_argument("RecallTask: symbols is " + std::to_string(symbols) +
                                  ", expected at least 1");
  }

  int symbols() const { return symbols_; }

  /// With one query, the key of a random position.
  RecallSequence training(fw::Random& random) const {
    RecallSequence s = pairs(repeats_ ? 2 * symbols_ : symbols_, random);
    add_query(s, s.keys[static_cast<std::size_t>(random.below(s.keys.size()))]);
    return s;
  }

  RecallSequence evaluation(fw::Random& random) const {
    RecallSequence s = pairs(symbols_, random);
    std::vector<bool> there(static_cast<std::size_t>(symbols_));
    for (const int key : s.keys) there[static_cast<std::size_t>(key)] = true;
    for (int key = 0; key < symbols_ && s.queries.size() < 200; ++key)
      if (there[static_cast<std::size_t>(key)]) add_query(s, key);
    return s;
  }

 private:
  RecallSequence pairs(int length, fw::Random& random) const {
    const std::vector<int> keys = draw(length, random);
    return {keys, draw(length, random), {}, {}};
  }
  std::vector<int> draw(int length, fw::Random& random) const {
    std::vector<int> symbols(static_cast<std::size_t>(length));
    if (repeats_) {
      for (int& each : symbols)
        each = static_cast<int>(random.below(static_cast<std::uint64_t>(symbols_)));
    } else {
      std::iota(symbols.begin(), symbols.end(), 0);
      shuffle(symbols, random);
    }
    return symbols;
  }
  static void add_query(RecallSequence& s, int key) {
    std::size_t last = s.keys.size();
    while (s.keys[--last] != key) continue;
    s.queries.push_back(key);
    s.answers.push_back(s.values[last]);
  }

  int symbols_;
  bool repeats_;
};

/// The queries after `length` pairs drawn with replacement.
enum class Queries { every_key, random_position };

/// The expected loss ½‖v* − v̂‖² of a sum rule that addresses perfectly. v̂ is then the mean of the n
/// values of the key, and the mean loss over the values is ½ (1 − 1/n)(1 − 1/S). With every key as
/// a query n is binomial, given n > 0. With the key of a random position n − 1 is binomial, over
/// the other positions.
inline double perfect_addressing(int symbols, int length, Queries queries) {
  const double S = symbols, hit = 1 / S;
  const int others = queries == Queries::every_key ? length : length - 1;
  double weight = std::pow(1 - hit, others), sum = 0, total = 0;  // of n = 0 hits among the others
  for (int hits = 0; hits <= others; ++hits) {
    const int n = queries == Queries::every_key ? hits : hits + 1;
    if (n > 0) {
      sum += weight * 0.5 * (1 - 1.0 / n) * (1 - 1 / S);
      total += weight;
    }
    weight *= (others - hits) / (hits + 1.0) * hit / (1 - hit);
  }
  return sum / total;
}
