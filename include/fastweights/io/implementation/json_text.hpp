#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "fastweights/core/abi.hpp"

/// \file
/// Text in JSON: UTF-8, and strings quoted and escaped.

namespace fw::inline FASTWEIGHTS_ABI::io::detail {

/// The length in bytes of the UTF-8 character at `at`, or 0 if it is not valid. As in the standard,
/// overlong forms, surrogates and numbers beyond U+10FFFF are not valid.
inline std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto follows = [&](std::size_t i, unsigned least = 0x80, unsigned most = 0xBF) {
    return byte(at + i) >= least && byte(at + i) <= most;
  };
  const unsigned first = byte(at);
  if (first < 0x80) return at < text.size() ? 1 : 0;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const unsigned least = first == 0xE0 ? 0xA0 : 0x80, most = first == 0xED ? 0x9F : 0xBF;
    return follows(1, least, most) && follows(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const unsigned least = first == 0xF0 ? 0x90 : 0x80, most = first == 0xF4 ? 0x8F : 0xBF;
    return follows(1, least, most) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

inline bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

/// Calls add(byte) for the bytes of the character U+`code` in UTF-8.
template <class Add> void encode_utf8(unsigned code, const Add& add) {
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xC0 | (code >> 6));
  } else {
    if (code < 0x10000) {
      add(0xE0 | (code >> 12));
    } else {
      add(0xF0 | (code >> 18));
      add(0x80 | ((code >> 12) & 0x3F));
    }
    add(0x80 | ((code >> 6) & 0x3F));
  }
  add(0x80 | (code & 0x3F));
}

/// Appends the character U+`code` in UTF-8.
inline void append_utf8(std::string& text, unsigned code) {
  encode_utf8(code, [&](unsigned byte) { text += static_cast<char>(byte); });
}

/// Appends one character of a JSON string, escaped where JSON requires it.
inline void append_escaped(std::string& quoted, std::string_view character) {
  constexpr std::string_view names = "\"\"\\\\\bb\ff\nn\rr\tt";  // pairs: character, its escape
  constexpr std::string_view digits = "0123456789abcdef";
  const char c = character[0];
  for (std::size_t i = 0; i < names.size(); i += 2)
    if (c == names[i]) {
      quoted += {'\\', names[i + 1]};
      return;
    }
  const auto code = static_cast<unsigned char>(c);
  if (code < 0x20)
    quoted += {'\\', 'u', '0', '0', digits[code >> 4U], digits[code & 0xFU]};
  else
    quoted += character;
}

/// Quotes and escapes a string as JSON, and cuts it if the result exceeds `limit` bytes. The name
/// of a hostile file's tensor may hold any bytes, so those that are not UTF-8 become U+FFFD.
inline std::string json_quote(std::string_view text, std::size_t limit = std::string_view::npos) {
  std::string quoted = "\"";
  for (std::size_t i = 0; i < text.size();) {
    if (quoted.size() > limit) return quoted + "...\"";
    const std::size_t length = utf8_length(text, i);
    if (length == 0)
      append_utf8(quoted, 0xFFFD);
    else
      append_escaped(quoted, text.substr(i, length));
    i += length == 0 ? 1 : length;
  }
  return quoted + "\"";
}

/// At most `limit` bytes of a text, without half a character.
inline std::string shortened(std::string_view text, std::size_t limit) {
  constexpr std::string_view cut = "...";
  if (text.size() <= limit) return std::string(text);
  std::size_t size = limit - cut.size();
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0U) == 0x80U) --size;
  return std::string(text.substr(0, size)).append(cut);
}

}  // namespace fw::io::detail
