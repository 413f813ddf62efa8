#pragma once

#ifndef PCRE2_CODE_UNIT_WIDTH
#define PCRE2_CODE_UNIT_WIDTH 8
#endif
#include <pcre2.h>

#include <algorithm>
#include <fastweights/core/errors.hpp>
#include <fastweights/models/tokenizer/category_names.hpp>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// Regular expressions of tokenizer.json are written for Oniguruma. This file writes them for
/// PCRE2.

namespace fw::inline FASTWEIGHTS_ABI::models {

/// Rewrites what the two libraries understand differently: \s, \w, \h, scripts such as \p{Han},
/// long names such as \p{Letter}, and sets of sets, such as [\p{L}&&[^\p{Han}]]. Throws
/// std::invalid_argument for what it does not know. PCRE2 checks the rest.
///
/// The differences left: (?i:ss) matches no ß, and the like for characters that fold to several;
/// which characters are in a class follows PCRE2's version of Unicode (script/check
/// tokenizer-classes).
class OnigurumaPattern {
 public:
  /// Rewrites `pattern`. `where` names its place in error messages.
  OnigurumaPattern(std::string_view pattern, const std::string& where)
      : rest_(pattern), where_(where) {
    if (pattern.size() > 1 << 16) fail("expected at most 65536 bytes");
    if (take("(?i)")) out_ = "(?i)";
    while (!rest_.empty()) add_next();
  }
  /// The pattern for PCRE2.
  const std::string& for_pcre2() const { return out_; }

 private:
  // A set of characters as the entries of [...], and more sets that are joined to it.
  struct Union {
    std::string entries;
    std::vector<std::string> others;
  };

  void add_next() {
    if (take("["))
      out_ += set(0);
    else if (rest_[0] == '\\')
      out_ += escape();
    else if (rest_[0] == '(')
      add_group();
    else if (take("{"))
      add_interval();
    else
      out_ += next();
  }

  void add_group() {
    for (const char* each : {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?-i:"})
      if (take(each)) {
        out_ += each;
        return;
      }
    if (rest_.starts_with("(?") || rest_.starts_with("(*"))
      fail("the group " + std::string(rest_.substr(0, 5)) + " is not supported");
    out_ += next();
  }

  // Behind "{". Without numbers it is a character.
  void add_interval() {
    const std::string least = digits();
    const bool has_comma = take(",");
    const std::string most = has_comma ? digits() : "";
    const std::string both = least + (has_comma ? "," : "") + most;
    if ((least.empty() && most.empty()) || !take("}")) {
      out_ += "\\{" + both;
      return;
    }
    if (rest_.starts_with("+") || (!has_comma && rest_.starts_with("?")))
      fail("{" + both + "}" + rest_[0] + " is not supported");
    out_ += std::string(least.empty() ? "{0" : "{") + both + "}";
  }

  std::string escape() {
    for (const char* anchor : {"\\A", "\\z", "\\Z"})
      if (take(anchor)) return anchor;
    // In a set, such as [\w], Oniguruma leaves the numbers of Latin-1 out.
    const Union one = escaped(std::string(word) + latin_numbers);
    return one.others.empty() ? "[" + one.entries + "]" : one.others[0];
  }

  static Union without(const std::string& entries) { return {"", {"[^" + entries + "]"}}; }

  // At a backslash: \S and the like are sets of their own, the others entries. `words` are those of
  // \w.
  Union escaped(const std::string& words) {
    rest_.remove_prefix(1);
    if (take("s")) return {space, {}};
    if (take("w")) return {words, {}};
    if (take("h")) return {hexadecimal, {}};
    if (take("S")) return without(space);
    if (take("W")) return without(words);
    if (take("H")) return without(hexadecimal);
    if (take("v")) return {"\\x{B}", {}};
    if (take("u")) return {"\\x{" + std::string(take_bytes(4)) + "}", {}};
    if (rest_.starts_with("x{")) return {"\\" + std::string(take_bytes(rest_.find('}') + 1)), {}};
    if (take("p{")) return property(false, words);
    if (take("P{")) return property(true, words);
    for (const char* each : {"n", "r", "t", "f", "a", "e", "d", "D"})
      if (take(each)) return {std::string("\\") + each, {}};
    const char c = next();
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c < 0)
      fail(std::string("\\") + (c < 0 ? '?' : c) + " is not supported");
    return {std::string("\\") + c, {}};
  }

  // Behind \p{ or \P{. PCRE2 since 10.40 reads \p{Han} as Script_Extensions, and \p{sc:Han} as the
  // script. It reads sc: with scripts alone; older ones do not know it, and mean scripts.
  Union property(bool is_negative, const std::string& words) {
    if (take("^")) is_negative = !is_negative;
    const std::string_view name = take_bytes(rest_.find('}') + 1);
    if (const auto* category = detail::category_of(name.substr(0, name.size() - 1))) {
      const std::string entries = *category->entries != 0 ? category->entries : words;
      return is_negative == category->is_complement ? Union{entries, {}} : without(entries);
    }
    if (name.find_first_of(":=") != name.npos) fail("{" + std::string(name) + " is not supported");
    const std::string script = "sc:" + std::string(name);
    return {
        (is_negative ? "\\P{" : "\\p{") + (is_known("\\p{" + script) ? script : std::string(name)),
        {}};
  }
  static bool is_known(const std::string& pattern) {
    int error = 0;
    PCRE2_SIZE position = 0;
    pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                     PCRE2_UTF, &error, &position, nullptr);
    pcre2_code_free(code);
    return code != nullptr;
  }

  // Behind "[", as an expression of one character.
  std::string set(int depth) {
    if (depth > 20) fail("sets are nested too deeply");
    const bool is_negative = take("^");
    std::string all;
    bool is_plain = true;
    Union part = union_until_end(depth);
    while (take("&&")) {
      all += "(?=" + expression(part) + ")";
      part = union_until_end(depth);
      is_plain = false;
    }
    if (!take("]")) fail("a set has no end");
    is_plain = is_plain && part.others.empty();
    if (is_plain) return (is_negative ? "[^" : "[") + part.entries + "]";
    all += expression(part);
    return is_negative ? "(?:(?!" + all + ")(?s:.))" : "(?:" + all + ")";
  }

  Union union_until_end(int depth) {
    Union all;
    if (take("]")) all.entries = "\\]";
    bool is_character = false;  // the entry before, so that "-" makes a range of it
    while (!rest_.empty() && rest_[0] != ']' && !rest_.starts_with("&&")) {
      if (rest_.starts_with("[:")) fail("sets such as [:alpha:] are not supported");
      if (take("[")) {
        all.others.push_back(set(depth + 1));
        is_character = false;
      } else if (rest_[0] == '\\') {
        is_character = !is_class();
        const Union one = escaped(word);
        all.entries += one.entries;
        all.others.insert(all.others.end(), one.others.begin(), one.others.end());
      } else if (take("-")) {
        const bool is_range = is_character && !is_class() && !rest_.starts_with("[") &&
                              !rest_.starts_with("]") && !rest_.starts_with("&&");
        all.entries += is_range ? "-" : "\\-";
        is_character = false;
      } else {
        all.entries += next();
        is_character = true;
      }
    }
    if (all.entries.empty() && all.others.empty()) fail("a set is empty");
    return all;
  }

  // True if \s, \p{L} or the like is next, which no range ends in.
  bool is_class() const {
    return rest_.size() > 1 && rest_[0] == '\\' &&
           std::string_view("sSwWhHdDpP").find(rest_[1]) != std::string_view::npos;
  }

  static std::string expression(const Union& part) {
    std::string all = part.entries.empty() ? "" : "[" + part.entries + "]";
    for (const std::string& each : part.others) all += (all.empty() ? "" : "|") + each;
    return "(?:" + all + ")";
  }

  bool take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  std::string_view take_bytes(std::size_t n) {
    if (n == 0 || n > rest_.size()) fail("ends too early");
    const std::string_view bytes = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return bytes;
  }
  char next() { return take_bytes(1)[0]; }
  std::string digits() {
    const std::size_t n = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
    return n == 0 ? "" : std::string(take_bytes(n));
  }
  [[noreturn]] void fail(const std::string& what) const {
    fw::detail::throw_invalid({where_, ": ", what});
  }

  // White_Space; Alphabetic, marks, digits, connectors; ² ³ ¹ ¼ ½ ¾; digits of base 16.
  static constexpr const char* space =
      "\\x{9}-\\x{D}\\x{20}\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}"
      "\\x{205F}\\x{3000}";
  static constexpr const char* word =
      "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{24B6}-\\x{24E9}\\x{1F130}-\\x{1F149}\\x{1F150}-"
      "\\x{1F169}\\x{1F170}-\\x{1F189}";
  static constexpr const char* latin_numbers = "\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}";
  static constexpr const char* hexadecimal = "0-9A-Fa-f";

  std::string_view rest_;
  const std::string& where_;
  std::string out_;
};

}  // namespace fw::models
