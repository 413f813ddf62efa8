#pragma once

#include <array>
#include <cstdint>
#include <fastweights/algorithms/step.hpp>
#include <fastweights/continuous/gibbs_density.hpp>
#include <fastweights/math/random.hpp>
#include <fastweights/memories/attention/continuous_memory.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>
#include <string_view>

namespace web {

inline constexpr int d = 16;
using Vector = Eigen::Matrix<float, d, 1>;

/// A unit vector for a word, always the same. Keys and values of one word differ.
inline Vector vector_of(std::string_view word, bool is_key) {
  std::uint64_t hash = is_key ? 14695981039346656037u : 1099511628211u;  // FNV-1a
  for (const char c : word) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  fw::Random random(hash);
  Vector x;
  random.fill(x);
  return x.normalized();
}

/// Four memories that are written the same pairs of words: the sum rule, the delta rule, the gated
/// delta rule and the continuous memory of the ∞-former. The last one keeps a signal of pairs: its
/// query is the key, with zeros for the value, and its answer the lower half.
class WordMemories {
 public:
  static constexpr int count = 4;

  /// β is the strength of the delta rules, α the decay of the gated one.
  void write(std::string_view key_word, std::string_view value_word, float beta, float decay) {
    const Vector key = vector_of(key_word, true), value = vector_of(value_word, false);
    fw::write(sum_, sum_state_, {key, value});
    fw::write(delta_, delta_state_, {key, value, beta});
    fw::write(gated_, gated_state_, {key, value, beta, decay});
    Eigen::Matrix<float, 2 * d, duration> pair;
    pair.topRows<d>().colwise() = key;
    pair.bottomRows<d>().colwise() = value;
    fw::write(signal_, signal_state_, {pair});
  }
  /// Reads all memories with a key.
  void ask(std::string_view key_word) {
    const Vector key = vector_of(key_word, true);
    fw::read(sum_, sum_state_, {key}, {answers_[0]});
    fw::read(delta_, delta_state_, {key}, {answers_[1]});
    fw::read(gated_, gated_state_, {key}, {answers_[2]});
    Pair query = Pair::Zero(), answer;
    query.head<d>() = sharpness * key;
    fw::read(signal_, signal_state_, {query}, {answer});
    answers_[3] = answer.tail<d>();
  }
  /// How much of a word is in the last answer: 1 if it is this word's value and nothing else.
  float score(int memory, std::string_view value_word) const {
    return answers_[static_cast<std::size_t>(memory)].dot(vector_of(value_word, false));
  }
  /// What the memory keeps, column by column.
  const float* numbers(int memory) const {
    const float* const all[] = {sum_state_.W.data(), delta_state_.W.data(), gated_state_.W.data(),
                                signal_state_.coefficients.data()};
    return all[memory];
  }
  int rows(int memory) const { return memory == 3 ? 2 * d : d; }
  int columns(int memory) const {
    return memory == 3 ? static_cast<int>(signal_state_.coefficients.cols()) : d;
  }

 private:
  using Pair = Eigen::Matrix<float, 2 * d, 1>;
  using Signal = fw::ContinuousMemory<float, fw::GibbsDensity<float>, fw::RectangularBasis<float>>;
  static constexpr int duration = 8;  // samples of the signal that a pair takes
  static constexpr float sharpness = 80;

  fw::LinearAttention<float, d> sum_;
  fw::DeltaRule<float, d> delta_;
  fw::GatedDeltaRule<float, d> gated_;
  Signal signal_{{.d = 2 * d, .chunk = duration, .contraction = fw::Contraction::fixed(0.9, 64)}};
  fw::StateOf<fw::LinearAttention<float, d>> sum_state_ = fw::initial_state(sum_);
  fw::StateOf<fw::DeltaRule<float, d>> delta_state_ = fw::initial_state(delta_);
  fw::StateOf<fw::GatedDeltaRule<float, d>> gated_state_ = fw::initial_state(gated_);
  fw::StateOf<Signal> signal_state_ = fw::initial_state(signal_);
  std::array<Vector, count> answers_{};
};

}  // namespace web
