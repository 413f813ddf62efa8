#pragma once

#include <algorithm>
#include <cmath>
#include <fastweights/core/errors.hpp>
#include <fastweights/core/views.hpp>
#include <fastweights/math/random.hpp>
#include <span>
#include <string>
#include <vector>

/// \file
/// Draws the next token from logits.

namespace fw::inline FASTWEIGHTS_ABI::models {

/// Options of a Sampler.
struct SamplerOptions {
  /// Logits are divided by it. 0: always the largest logit.
  double temperature = 1;
  /// Only the k largest logits; 0: all.
  Index top_k = 0;
  /// Only the fewest largest whose probabilities sum to top_p (Holtzman et al. 2020, The Curious
  /// Case of Neural Text Degeneration, arXiv 1904.09751), but at least one.
  double top_p = 1;
  /// Only tokens at least min_p times as probable as the likeliest (Nguyen et al. 2024, Turning Up
  /// the Heat, arXiv 2407.01082).
  double min_p = 0;
  /// Logits of tokens that the text has are divided by it, negative ones multiplied (Keskar et al.
  /// 2019, CTRL, arXiv 1909.05858, section 4.1). Above 1 there are fewer repetitions.
  double repetition_penalty = 1;
  std::uint64_t seed = 0;  ///< equal seeds draw equal tokens
};

/// Draws ids with the probabilities softmax(logits / temperature), restricted to the top_k largest,
/// then to top_p of what is left, then by min_p, as in transformers. Of equal logits the lowest id
/// comes first. The sequence of a seed is the same everywhere, up to the last bit of std::exp.
/// After the first call it allocates nothing, if there are not more logits than before.
class Sampler {
 public:
  /// Throws std::invalid_argument for options out of their ranges.
  explicit Sampler(const SamplerOptions& options) : options_(options), random_(options.seed) {
    if (!(options.temperature >= 0) || std::isinf(options.temperature))
      fail("temperature", options.temperature, "at least 0");
    if (!(options.top_p >= 0 && options.top_p <= 1)) fail("top_p", options.top_p, "0 to 1");
    if (!(options.min_p >= 0 && options.min_p <= 1)) fail("min_p", options.min_p, "0 to 1");
    if (!(options.repetition_penalty > 0) || std::isinf(options.repetition_penalty))
      fail("repetition_penalty", options.repetition_penalty, "above 0");
    if (options.top_k < 0) fail("top_k", static_cast<double>(options.top_k), "at least 0");
  }

  /// Logits: a vector with size() and [i]. −∞ is a token that is never drawn. Throws
  /// std::invalid_argument if a logit is NaN or +∞, or if all are −∞, and draws nothing then.
  template <class Logits> int operator()(const Logits& logits) {
    const Index best = largest(logits);
    if (options_.temperature == 0) return static_cast<int>(best);
    candidates_.clear();
    candidates_.reserve(static_cast<std::size_t>(logits.size()));
    const double most = static_cast<double>(logits[at<Logits>(best)]);
    for (Index i = 0; i < static_cast<Index>(logits.size()); ++i) {
      const double logit = static_cast<double>(logits[at<Logits>(i)]);
      candidates_.push_back(
          {logit, std::exp((logit - most) / options_.temperature), static_cast<int>(i)});
    }
    restrict_to_top_k();
    restrict_to_top_p();
    restrict_to_min_p();
    return draw();
  }

  /// With the repetition penalty for the ids of a text; an id that comes often counts once. Throws
  /// std::invalid_argument for an id that has no logit, and draws nothing then.
  template <class Logits> int operator()(const Logits& logits, std::span<const int> text) {
    if (options_.repetition_penalty == 1) return (*this)(logits);
    penalised_.resize(static_cast<std::size_t>(logits.size()));
    for (std::size_t i = 0; i < penalised_.size(); ++i)
      penalised_[i] = static_cast<double>(logits[at<Logits>(static_cast<Index>(i))]);
    for (const int id : text) {
      if (id < 0 || static_cast<std::size_t>(id) >= penalised_.size())
        fw::detail::throw_invalid({"Sampler: the text has the id ", std::to_string(id),
                                   ", expected 0 to ", std::to_string(logits.size() - 1)});
      const double logit = static_cast<double>(logits[at<Logits>(id)]);
      penalised_[static_cast<std::size_t>(id)] =
          logit < 0 ? logit * options_.repetition_penalty : logit / options_.repetition_penalty;
    }
    return (*this)(penalised_);
  }

 private:
  struct Candidate {
    double logit, weight;
    int id;
  };
  static bool comes_first(const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  }
  static bool comes_last(const Candidate& a, const Candidate& b) { return comes_first(b, a); }

  template <class Logits> static auto at(Index i) {
    return static_cast<decltype(std::declval<const Logits&>().size())>(i);
  }

  template <class Logits> static Index largest(const Logits& logits) {
    Index best = -1;
    double most = -HUGE_VAL;
    for (Index i = 0; i < static_cast<Index>(logits.size()); ++i) {
      const double logit = static_cast<double>(logits[at<Logits>(i)]);
      if (!(logit < HUGE_VAL))
        fw::detail::throw_invalid(
            {"Sampler: logit ", std::to_string(i), " is ", std::isnan(logit) ? "NaN" : "infinite"});
      if (logit > most) {
        most = logit;
        best = i;
      }
    }
    if (best < 0) fw::detail::throw_invalid({"Sampler: there is no logit above minus infinity"});
    return best;
  }

  void restrict_to_top_k() {
    const auto k = static_cast<std::size_t>(options_.top_k);
    if (k == 0 || k >= candidates_.size()) return;
    std::nth_element(candidates_.begin(), candidates_.begin() + options_.top_k, candidates_.end(),
                     comes_first);
    candidates_.resize(k);
    std::sort(candidates_.begin(), candidates_.end(),
              comes_first);  // nth_element has no fixed order
  }

  // A heap gives the largest one by one, so that the others need not be sorted.
  void restrict_to_top_p() {
    if (options_.top_p == 1) return;
    const double share = options_.top_p * sum();
    std::make_heap(candidates_.begin(), candidates_.end(), comes_last);
    auto rest = candidates_.end();
    double taken = 0;
    do {
      std::pop_heap(candidates_.begin(), rest, comes_last);
      --rest;
      taken += rest->weight;
    } while (taken < share && rest != candidates_.begin());
    candidates_.erase(candidates_.begin(), rest);
  }

  // The likeliest token has weight 1, and is never left out.
  void restrict_to_min_p() {
    if (options_.min_p > 0)
      std::erase_if(candidates_, [&](const Candidate& c) { return c.weight < options_.min_p; });
  }

  double sum() const {
    double all = 0;
    for (const Candidate& each : candidates_) all += each.weight;
    return all;
  }

  int draw() {
    const double target = random_.uniform() * sum();
    double before = 0;
    const Candidate* last = nullptr;
    for (const Candidate& each : candidates_) {
      if (each.weight == 0) continue;
      last = &each;
      before += each.weight;
      if (target < before) break;
    }
    return last->id;  // the last of all if rounding put the target beyond it
  }

  [[noreturn]] static void fail(const char* name, double given, const char* expected) {
    fw::detail::throw_invalid(
        {"Sampler: ", name, " is ", std::to_string(given), ", expected ", expected});
  }

  SamplerOptions options_;
  Random random_;
  std::vector<Candidate> candidates_;
  std::vector<double> penalised_;
};

}  // namespace fw::models
