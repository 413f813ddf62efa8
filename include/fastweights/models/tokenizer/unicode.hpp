#pragma once

#include <utf8proc.h>

#include <algorithm>
#include <fastweights/core/abi.hpp>
#include <fastweights/models/tokenizer/newer_marks.hpp>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// Characters of UTF-8 text, and their normal form. Needs utf8proc.

namespace fw::inline FASTWEIGHTS_ABI::models {

/// The beginning of a text: a character, bytes that are none, or the first bytes of a character
/// whose others are not there yet.
struct Utf8Start {
  /// The kind of the bytes.
  enum Kind {
    character,  ///< a whole one
    invalid,    ///< no character
    incomplete  ///< the first bytes of one
  };
  std::size_t bytes;  ///< their number
  Kind kind;          ///< what they are
};

/// Bytes that are no character are taken together as in the Unicode Standard, table 3-8 (maximal
/// subparts), as Python does.
inline Utf8Start utf8_start(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {1, Utf8Start::character};
  if (lead < 0xC2 || lead > 0xF4) return {1, Utf8Start::invalid};
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The second byte excludes forms that are too long, surrogates, and points above U+10FFFF.
  unsigned least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  unsigned most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (std::size_t i = 1; i < length; ++i) {
    if (i == text.size()) return {i, Utf8Start::incomplete};
    if (byte(i) < least || byte(i) > most) return {i, Utf8Start::invalid};
    least = 0x80;
    most = 0xBF;
  }
  return {length, Utf8Start::character};
}

/// Moves whole characters from the front of `bytes` to the end of `text`, and U+FFFD for bytes that
/// are none. An incomplete character stays in `bytes`, unless this is the end.
inline void move_characters(std::string& bytes, std::string& text, bool is_end) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const Utf8Start start = utf8_start(std::string_view(bytes).substr(done));
    if (start.kind == Utf8Start::incomplete && !is_end) break;
    if (start.kind == Utf8Start::character)
      text.append(bytes, done, start.bytes);
    else
      text += "\uFFFD";
    done += start.bytes;
  }
  bytes.erase(0, done);
}

/// The text with U+FFFD for what is no character.
inline std::string valid_utf8(std::string bytes) {
  std::string text;
  text.reserve(bytes.size());
  move_characters(bytes, text, true);
  return text;
}

/// The first code point of valid text that is not empty.
inline utf8proc_int32_t first_point(std::string_view text) {
  utf8proc_int32_t point = 0;
  utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &point);
  return point;
}

/// The last character of valid text that is not empty.
inline std::string_view last_character(std::string_view text) {
  std::size_t begin = text.size() - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  return text.substr(begin);
}

/// The property White_Space.
inline bool is_space(utf8proc_int32_t point) {
  return (point >= 0x09 && point <= 0x0D) || point == 0x20 || point == 0x85 || point == 0xA0 ||
         point == 0x1680 || (point >= 0x2000 && point <= 0x200A) || point == 0x2028 ||
         point == 0x2029 || point == 0x202F || point == 0x205F || point == 0x3000;
}

/// Letters, marks, digits and connectors: \w of the Unicode Technical Standard 18.
inline bool is_word(utf8proc_int32_t point) {
  const utf8proc_category_t category = utf8proc_category(point);
  const bool is_circled_letter =
      (point >= 0x24B6 && point <= 0x24E9) || (point >= 0x1F130 && point <= 0x1F149) ||
      (point >= 0x1F150 && point <= 0x1F169) || (point >= 0x1F170 && point <= 0x1F189);
  return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NL) ||
         category == UTF8PROC_CATEGORY_PC || is_circled_letter || point == 0x200C ||
         point == 0x200D;
}

/// Adds the normal form of a valid text, in O(n log n) even if it is one letter with a million
/// accents.
inline void add_normal_form(std::string_view text, std::string& normal) {
  std::vector<utf8proc_int32_t> points;
  while (!text.empty()) {
    utf8proc_int32_t parts[16];
    const auto n =
        utf8proc_decompose_char(first_point(text), parts, 16, UTF8PROC_DECOMPOSE, nullptr);
    points.insert(points.end(), parts, parts + n);
    text.remove_prefix(utf8_start(text).bytes);
  }
  const auto order = [](utf8proc_int32_t point) {
    return utf8proc_get_property(point)->combining_class;
  };
  for (auto begin = points.begin(); begin != points.end();) {
    const auto end =
        std::find_if(begin, points.end(), [&](auto point) { return order(point) == 0; });
    std::stable_sort(begin, end, [&](auto a, auto b) { return order(a) < order(b); });
    begin = end == points.end() ? end : end + 1;
  }
  const utf8proc_ssize_t n =
      utf8proc_normalize_utf32(points.data(), static_cast<utf8proc_ssize_t>(points.size()),
                               static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  points.resize(static_cast<std::size_t>(n));
  for (const utf8proc_int32_t point : points) {
    utf8proc_uint8_t bytes[4];
    const auto length = static_cast<std::size_t>(utf8proc_encode_char(point, bytes));
    normal.append(reinterpret_cast<const char*>(bytes), length);
  }
}

/// Normalization Form C of valid text (Unicode Standard Annex 15), as of Unicode 9 like the package
/// tokenizers: newer marks stay where they are and join nothing.
inline std::string nfc(std::string_view text) {
  // All characters below U+0300, whose first byte is 0xCC, are in this form.
  if (std::all_of(text.begin(), text.end(),
                  [](char c) { return static_cast<unsigned char>(c) < 0xCC; }))
    return std::string(text);
  std::string normal;
  std::size_t done = 0;
  for (std::size_t i = 0, bytes = 0; i < text.size(); i += bytes) {
    const std::string_view rest = text.substr(i);
    bytes = utf8_start(rest).bytes;
    if (!is_newer_mark(first_point(rest))) continue;
    add_normal_form(text.substr(done, i - done), normal);
    normal.append(rest.substr(0, bytes));
    done = i + bytes;
  }
  add_normal_form(text.substr(done), normal);
  return normal;
}

}  // namespace fw::models
