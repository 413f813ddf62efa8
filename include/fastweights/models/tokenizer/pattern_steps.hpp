#pragma once

#ifndef PCRE2_CODE_UNIT_WIDTH
#define PCRE2_CODE_UNIT_WIDTH 8
#endif
#include <pcre2.h>

#include <algorithm>
#include <cstdint>
#include <fastweights/core/abi.hpp>
#include <string_view>
#include <utility>
#include <vector>

/// \file
/// Counts the work of regular expressions. PCRE2's own limits do not count the characters that one
/// repeat reads, such as a*+. Needs PCRE2.

namespace fw::inline FASTWEIGHTS_ABI::models {

/// The steps that all patterns of a tokenizer may take for one text: 2^25 and 256 a byte. A step
/// tries an item of a pattern, or reads a character for it; sets and repeats of many characters
/// count as several. The usual patterns take about 5 a byte.
class PatternSteps {
 public:
  /// For a text of so many bytes.
  explicit PatternSteps(std::size_t bytes) : most_((std::uint64_t{1} << 25) + 256 * bytes) {}
  /// Takes that many more steps, and returns true, if they may be taken.
  bool take(std::uint64_t steps) {
    if (steps > most_ - taken_) return false;
    taken_ += steps;
    return true;
  }
  /// The steps that were taken.
  std::uint64_t taken() const { return taken_; }
  /// The steps that may be taken.
  std::uint64_t most() const { return most_; }

 private:
  std::uint64_t most_, taken_ = 0;
};

/// The costs of the items of a pattern, which was compiled with PCRE2_AUTO_CALLOUT.
class ItemWeights {
 public:
  /// The steps of an item.
  struct Weight {
    std::uint32_t item = 1;       ///< to try it
    std::uint32_t character = 1;  ///< for each character that it reads
  };

  /// The costs of no pattern.
  ItemWeights() = default;
  /// The costs of a pattern and its text.
  ItemWeights(const pcre2_code& code, std::string_view pattern) : weights_(pattern.size() + 1) {
    std::uint32_t look_behind = 0;
    pcre2_pattern_info(&code, PCRE2_INFO_MAXLOOKBEHIND, &look_behind);
    const auto weigh = [&](const pcre2_callout_enumerate_block& at) {
      const auto item = pattern.substr(at.pattern_position, at.next_item_length);
      weights_[at.pattern_position] = weight(item, look_behind);
    };
    pcre2_callout_enumerate(
        &code,
        [](pcre2_callout_enumerate_block* at, void* each) {
          (*static_cast<decltype(weigh)*>(each))(*at);
          return 0;
        },
        const_cast<void*>(static_cast<const void*>(&weigh)));
  }
  /// The cost of the item that begins at this byte of the pattern.
  const Weight& operator[](std::size_t place) const { return weights_[place]; }

 private:
  // A set of many ranges takes long for each character. X{n} may read n - 1 characters before it
  // fails, and a look-behind may go back as far as the longest before it fails.
  static Weight weight(std::string_view item, std::uint32_t look_behind) {
    const auto character = static_cast<std::uint32_t>(1 + item.size() / 64);
    const std::uint32_t most = item.starts_with("(?<") ? 1 + look_behind : repeats(item);
    return {character * most, character};
  }
  // n of X{n}, X{n,} and X{n,m}, at least 1. Other braces stand in sets or behind a backslash.
  static std::uint32_t repeats(std::string_view item) {
    const std::size_t brace = item.rfind('{');
    if (brace == item.npos || item.find(']', brace) != item.npos) return 1;
    std::uint32_t n = 0;  // PCRE2 has at most 65535
    for (const char c : item.substr(brace + 1)) {
      if (c < '0' || c > '9') break;
      n = 10 * n + static_cast<std::uint32_t>(c - '0');
    }
    return std::max(n, 1u);
  }

  std::vector<Weight> weights_;  // by place
};

/// Takes the steps of a match.
struct StepCounter {
  PatternSteps& steps;               ///< that are left
  const ItemWeights& weights;        ///< of the pattern
  std::size_t position = 0;          ///< in the text, where the item before began
  ItemWeights::Weight weight{1, 0};  ///< of the item before

  /// PCRE2 calls this before an item. The item before has read the text up to here, or it failed
  /// and the matcher went back to here.
  static int count(pcre2_callout_block* at, void* data) {
    auto& counter = *static_cast<StepCounter*>(data);
    const std::size_t before = std::exchange(counter.position, at->current_position);
    const std::size_t read =
        std::max(before, counter.position) - std::min(before, counter.position);
    const auto weight = std::exchange(counter.weight, counter.weights[at->pattern_position]);
    return counter.steps.take(weight.item + read * weight.character) ? 0 : PCRE2_ERROR_MATCHLIMIT;
  }
};

}  // namespace fw::models
