#pragma once

#include <array>
#include <fastweights/models/config.hpp>
#include <fastweights/models/tokenizer/split_pattern.hpp>
#include <optional>

/// \file
/// Splits a text into the words of which byte pairs are merged.

namespace fw::inline FASTWEIGHTS_ABI::models {

/// A step that cuts every word at the matches of an expression, such as {"type": "Split"}.
class SplitStep {
 public:
  /// The place of a match among the words.
  enum class Behaviour {
    removed,               ///< it is dropped
    isolated,              ///< it is a word
    merged_with_previous,  ///< it ends the word before it
    merged_with_next,      ///< it begins the word after it
    contiguous             ///< matches that follow each other are one word
  };

  /// Cuts at the matches, or if inverted, between them.
  SplitStep(SplitPattern pattern, Behaviour behaviour, bool is_inverted = false)
      : pattern_(std::move(pattern)), behaviour_(behaviour), is_inverted_(is_inverted) {}

  /// From an object of tokenizer.json. `where` is what errors begin with.
  static SplitStep read(const nlohmann::json& json, const std::string& where) {
    const Config config(json, where);
    const Config pattern = config.part("pattern");
    const std::string place = where + ": pattern";
    const bool is_regex = pattern.has("Regex");
    if (is_regex == pattern.has("String")) config.fail("pattern", "expected a Regex or a String");
    return SplitStep(is_regex ? SplitPattern(pattern.text("Regex"), place)
                              : SplitPattern::literal(pattern.text("String"), place),
                     behaviour(config), config.flag("invert"));
  }

  /// Replaces every word by its parts, with steps of those that are left.
  void apply(std::vector<std::string_view>& words, PatternSteps& steps) const {
    std::vector<std::string_view> all;
    for (const std::string_view word : words)
      for (const TextPart& part : parts(word, steps))
        if (part.end > part.begin) all.push_back(word.substr(part.begin, part.end - part.begin));
    words = std::move(all);
  }

 private:
  static Behaviour behaviour(const Config& config) {
    config.expect("behavior",
                  {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"});
    const std::string name = config.text("behavior");
    if (name == "Removed") return Behaviour::removed;
    if (name == "Isolated") return Behaviour::isolated;
    if (name == "MergedWithPrevious") return Behaviour::merged_with_previous;
    if (name == "MergedWithNext") return Behaviour::merged_with_next;
    if (name != "Contiguous") config.fail("behavior", "is missing");
    return Behaviour::contiguous;
  }

  std::vector<TextPart> parts(std::string_view word, PatternSteps& steps) const {
    std::vector<TextPart> all = pattern_.parts(word, steps);
    if (is_inverted_)
      for (TextPart& part : all) part.is_match = !part.is_match;
    if (behaviour_ == Behaviour::isolated) return all;
    if (behaviour_ == Behaviour::removed) {
      std::erase_if(all, [](const TextPart& part) { return part.is_match; });
      return all;
    }
    const bool is_backward = behaviour_ == Behaviour::merged_with_next;
    if (is_backward) std::reverse(all.begin(), all.end());
    join(all);
    if (is_backward) std::reverse(all.begin(), all.end());
    return all;
  }

  // A match joins what was before it, but only one match does; or all matches in a row are joined.
  void join(std::vector<TextPart>& all) const {
    std::vector<TextPart> joined;
    bool was_match = false;
    for (const TextPart& part : all) {
      const bool joins = behaviour_ == Behaviour::contiguous ? part.is_match == was_match
                                                             : part.is_match && !was_match;
      if (joins && !joined.empty()) {
        joined.back().begin = std::min(joined.back().begin, part.begin);
        joined.back().end = std::max(joined.back().end, part.end);
      } else {
        joined.push_back(part);
      }
      was_match = part.is_match;
    }
    all = std::move(joined);
  }

  SplitPattern pattern_;
  Behaviour behaviour_;
  bool is_inverted_;
};

/// The entry pre_tokenizer of a tokenizer.json: Split and Digits, and ByteLevel at the end.
class PreTokenizer {
 public:
  /// From the entry of tokenizer.json. `where` is what errors begin with.
  PreTokenizer(const nlohmann::json& json, const std::string& where) {
    const Config config(json, where);
    config.expect("type", {"Sequence", "Split", "Digits", "ByteLevel"});
    if (config.text("type") != "Sequence") {
      add(json, where);
    } else {
      const nlohmann::json& steps = json.contains("pretokenizers") ? json["pretokenizers"] : json;
      if (!steps.is_array()) config.fail("pretokenizers", "expected a list");
      for (std::size_t i = 0; i < steps.size(); ++i)
        add(steps[i], where + ": pretokenizers " + std::to_string(i));
    }
    if (!has_end_) config.fail("type", "expected ByteLevel as the last step");
  }

  /// Calls use(word) with the words of a valid text in turn. Throws std::invalid_argument if the
  /// expressions take more steps than are left.
  template <class Use>
  void for_each_word(std::string_view text, PatternSteps& steps, const Use& use) const {
    std::vector<std::string_view> words = {text};
    for (const SplitStep& step : steps_) step.apply(words, steps);
    for (const std::string_view word : words) {
      if (!prefixes_space_ || word.starts_with(' '))
        for_each_part(word, steps, use);
      else
        for_each_part(std::string(1, ' ').append(word), steps, use);
    }
  }

 private:
  void add(const nlohmann::json& json, const std::string& where) {
    const Config config(json, where);
    if (has_end_) config.fail("type", "expected no step after ByteLevel");
    config.expect("type", {"Split", "Digits", "ByteLevel"});
    const std::string type = config.text("type");
    if (type == "Split")
      steps_.push_back(SplitStep::read(json, where));
    else if (type == "Digits")
      steps_.emplace_back(SplitPattern("\\p{N}", where), config.flag("individual_digits")
                                                             ? SplitStep::Behaviour::isolated
                                                             : SplitStep::Behaviour::contiguous);
    else if (type == "ByteLevel")
      add_byte_level(config, where);
    else
      config.fail("type", "is missing");
  }

  // The expression of GPT-2: Radford et al. 2019, Language Models are Unsupervised Multitask
  // Learners.
  void add_byte_level(const Config& config, const std::string& where) {
    has_end_ = true;
    prefixes_space_ = config.flag("add_prefix_space", true);
    if (config.flag("use_regex", true))
      gpt2_.emplace(SplitPattern("'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| "
                                 "?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
                                 where),
                    SplitStep::Behaviour::isolated);
  }

  template <class Use>
  void for_each_part(std::string_view word, PatternSteps& steps, const Use& use) const {
    std::vector<std::string_view> parts = {word};
    if (gpt2_) gpt2_->apply(parts, steps);
    for (const std::string_view part : parts) use(part);
  }

  std::vector<SplitStep> steps_;
  std::optional<SplitStep> gpt2_;
  bool prefixes_space_ = false, has_end_ = false;
};

}  // namespace fw::models
