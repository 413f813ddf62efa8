#pragma once

#ifndef PCRE2_CODE_UNIT_WIDTH
#define PCRE2_CODE_UNIT_WIDTH 8
#endif
#include <pcre2.h>

#include <fastweights/models/tokenizer/oniguruma.hpp>
#include <fastweights/models/tokenizer/pattern_steps.hpp>
#include <fastweights/models/tokenizer/unicode.hpp>
#include <memory>
#include <string>
#include <vector>

/// \file
/// Matches of a regular expression in a text. Needs PCRE2.

namespace fw::inline FASTWEIGHTS_ABI::models {

/// A part of a text, which matches the expression or lies between matches.
struct TextPart {
  std::size_t begin, end;  ///< its bytes in the text
  bool is_match;           ///< whether it matches
};

/// A regular expression of a tokenizer.json. `where` names its place in error messages.
class SplitPattern {
 public:
  /// Throws std::invalid_argument if the expression is wrong or not supported.
  SplitPattern(std::string_view oniguruma, const std::string& where) : where_(where) {
    const std::string pattern = OnigurumaPattern(oniguruma, where).for_pcre2();
    const std::unique_ptr<pcre2_compile_context, Free> context(
        pcre2_compile_context_create(nullptr));
    pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
    int error = 0;
    PCRE2_SIZE position = 0;
    // MULTILINE: Oniguruma's ^ and $ stand at lines. AUTO_CALLOUT: PCRE2 calls
    // StepCounter before every item, because its own limits do not count the characters that a
    // repeat reads.
    code_.reset(pcre2_compile(bytes(pattern), pattern.size(),
                              PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C |
                                  PCRE2_AUTO_CALLOUT,
                              &error, &position, context.get()),
                Free());
    if (code_ == nullptr) fail(error);
    weights_ = ItemWeights(*code_, pattern);
  }

  /// The text as it is, without special characters.
  static SplitPattern literal(std::string_view text, const std::string& where) {
    std::string pattern;
    for (const char c : text) {
      if (std::string_view("\\^$.[]|()?*+{}").find(c) != std::string_view::npos) pattern += '\\';
      pattern += c;
    }
    return SplitPattern(pattern, where);
  }

  /// Divides a valid text into matches and what lies between them. A match may be empty, but not at
  /// the end of the match before it. Throws std::invalid_argument if that takes more steps than are
  /// left, or more than 256 MiB.
  std::vector<TextPart> parts(std::string_view text, PatternSteps& steps) const {
    const std::unique_ptr<pcre2_match_data, Free> found(pcre2_match_data_create(1, nullptr));
    const std::unique_ptr<pcre2_match_context, Free> context(pcre2_match_context_create(nullptr));
    StepCounter counter{steps, weights_};
    pcre2_set_heap_limit(context.get(), 256 << 10);  // KiB
    pcre2_set_match_limit(context.get(), 1u << 28);  // the steps are fewer
    pcre2_set_callout(context.get(), StepCounter::count, &counter);
    std::vector<TextPart> all;
    std::size_t done = 0;
    for (std::size_t position = 0; position <= text.size();) {
      counter.position = position;
      if (!steps.take(1)) fail(PCRE2_ERROR_MATCHLIMIT);
      const bool is_match = matches_at(text, position, found.get(), context.get());
      const PCRE2_SIZE* match = pcre2_get_ovector_pointer(found.get());
      if (!is_match ||
          (match[1] == position && !all.empty() && all.back().is_match && match[1] == done)) {
        position += position < text.size() ? utf8_start(text.substr(position)).bytes : 1;
        continue;
      }
      if (done < match[0]) all.push_back({done, match[0], false});
      all.push_back({match[0], match[1], true});
      done = position = match[1];
    }
    if (done < text.size()) all.push_back({done, text.size(), false});
    return all;
  }
  /// The parts, with the steps of this text alone.
  std::vector<TextPart> parts(std::string_view text) const {
    PatternSteps steps(text.size());
    return parts(text, steps);
  }

 private:
  struct Free {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
    void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
    void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
    void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  };
  bool matches_at(std::string_view text, std::size_t position, pcre2_match_data* found,
                  pcre2_match_context* context) const {
    const int result = pcre2_match(code_.get(), bytes(text), text.size(), position,
                                   PCRE2_ANCHORED | PCRE2_NO_UTF_CHECK, found, context);
    if (result == PCRE2_ERROR_NOMATCH) return false;
    if (result < 0) fail(result);
    const PCRE2_SIZE* match = pcre2_get_ovector_pointer(found);
    if (match[0] < position || match[1] < match[0]) fail(PCRE2_ERROR_BADOFFSET);
    return true;
  }

  static PCRE2_SPTR bytes(std::string_view text) {
    return reinterpret_cast<PCRE2_SPTR>(text.data());
  }
  [[noreturn]] void fail(int error) const {
    if (error == PCRE2_ERROR_MATCHLIMIT)
      fw::detail::throw_invalid(
          {where_, ": takes more than 2^25 steps and 256 a byte of the text"});
    PCRE2_UCHAR text[200] = "";
    pcre2_get_error_message(error, text, sizeof text);
    fw::detail::throw_invalid({where_, ": ", reinterpret_cast<const char*>(text)});
  }

  std::string where_;
  std::shared_ptr<pcre2_code> code_;
  ItemWeights weights_;
};

}  // namespace fw::models
