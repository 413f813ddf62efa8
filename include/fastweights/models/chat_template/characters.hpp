#pragma once

#include <fastweights/models/tokenizer/unicode.hpp>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// Characters of texts, as the methods of Python's str see them.

namespace fw::inline FASTWEIGHTS_ABI::models::chat {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
inline bool is_space_byte(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
/// Python's isspace, which has four control characters more than Unicode.
inline bool is_python_space(utf8proc_int32_t point) {
  return is_space(point) || (point >= 0x1C && point <= 0x1F);
}

inline void append_point(std::string& text, std::uint32_t point) {
  utf8proc_uint8_t bytes[4];
  const auto n = utf8proc_encode_char(static_cast<utf8proc_int32_t>(point), bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(n));
}

/// Bytes of the first character of a valid text.
inline std::size_t first_bytes(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  return lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}
/// The characters of a valid text.
inline std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> all;
  while (!text.empty()) {
    all.push_back(text.substr(0, first_bytes(text)));
    text.remove_prefix(all.back().size());
  }
  return all;
}
/// Their number.
inline std::size_t length(std::string_view text) {
  std::size_t n = 0;
  for (const char c : text) n += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return n;
}

/// The text without these characters at its ends; without spaces if there are none.
inline std::string_view stripped(std::string_view text, std::string_view set = {}, bool left = true,
                                 bool right = true) {
  const auto is_in = [&](std::string_view character) {
    return set.empty() ? is_python_space(first_point(character))
                       : set.find(character) != std::string_view::npos;
  };
  while (left && !text.empty() && is_in(text.substr(0, first_bytes(text))))
    text.remove_prefix(first_bytes(text));
  while (right && !text.empty() && is_in(last_character(text)))
    text.remove_suffix(last_character(text).size());
  return text;
}

/// With every character mapped by f(point), one to one: ß stays as it is.
template <class F> std::string mapped(std::string_view text, const F& f) {
  std::string result;
  for (const std::string_view each : characters(text))
    append_point(result, static_cast<std::uint32_t>(f(first_point(each))));
  return result;
}
inline std::string upper(std::string_view text) { return mapped(text, utf8proc_toupper); }
inline std::string lower(std::string_view text) { return mapped(text, utf8proc_tolower); }
inline std::string capitalised(std::string_view text) {
  if (text.empty()) return {};
  const std::size_t n = first_bytes(text);
  return mapped(text.substr(0, n), utf8proc_totitle) + lower(text.substr(n));
}
/// True if the character has a case.
inline bool is_cased(utf8proc_int32_t point) {
  const auto category = utf8proc_category(point);
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL ||
         category == UTF8PROC_CATEGORY_LT;
}
/// Python's title: letters behind no letter are upper.
inline std::string title(std::string_view text) {
  bool behind_letter = false;
  return mapped(text, [&](utf8proc_int32_t point) {
    const auto result = behind_letter ? utf8proc_tolower(point) : utf8proc_totitle(point);
    behind_letter = is_cased(point);
    return result;
  });
}

/// The first place of the needle from `from` on, or npos, in linear time.
inline std::size_t find(std::string_view text, std::string_view needle, std::size_t from = 0) {
  if (needle.size() < 16 || from > text.size()) return text.find(needle, from);
  std::vector<std::size_t> border(needle.size());  // Knuth, Morris and Pratt
  for (std::size_t i = 1, k = 0; i < needle.size(); border[i++] = k) {
    while (k > 0 && needle[i] != needle[k]) k = border[k - 1];
    k += needle[i] == needle[k];
  }
  for (std::size_t i = from, k = 0; i < text.size(); ++i) {
    while (k > 0 && text[i] != needle[k]) k = border[k - 1];
    k += text[i] == needle[k];
    if (k == needle.size()) return i + 1 - k;
  }
  return std::string_view::npos;
}

}  // namespace fw::models::chat
