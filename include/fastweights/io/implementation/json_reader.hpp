#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

#include "fastweights/io/implementation/json_text.hpp"

/// \file
/// A strict, event-based reader of JSON (RFC 8259). It builds no document, so the receiver of the
/// events sees duplicate names and can refuse nesting at the first bracket. It decodes strings in
/// place, so it takes no memory. A complete JSON library adds several seconds to the compile time
/// of every source that reads a file.

namespace fw::inline FASTWEIGHTS_ABI::io::detail {

/// Reads one value, which only white space may follow, and calls the functions of `Events` for its
/// parts in order:
///
///     start_object(), key(string_view), end_object()
///     start_array(size_t position of its bracket), end_array()
///     string(string_view), natural_number(uint64_t)
///     other_number(string_view text), literal(string_view word): true, false or null
///     syntax_error(string what): the text is not JSON; must not return
///
/// They throw at a part that their format does not allow. They have to limit the nesting, since the
/// reader is recursive. Strings are parts of the text and remain there.
template <class Events> class JsonReader {
 public:
  /// Changes the text: its strings are decoded.
  JsonReader(std::string& text, Events& events)
      : decoded_(text.data()), text_(text), events_(events) {}

  void read() {
    read_value();
    skip_space();
    if (position_ < text_.size()) fail("expected the end");
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    events_.syntax_error("parse error at byte " + std::to_string(position_) + ": " + what);
  }

  // NUL at the end, which no part of JSON is.
  char peek() const { return position_ < text_.size() ? text_[position_] : '\0'; }
  bool consume(char c) {
    if (peek() != c) return false;
    ++position_;
    return true;
  }
  void skip_space() {
    const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
    while (position_ < text_.size() && is_space(text_[position_])) ++position_;
  }
  void expect(char c) {
    skip_space();
    if (!consume(c)) fail(std::string("expected '") + c + "'");
  }

  void read_value() {
    skip_space();
    const char c = peek();
    if (c == '{') return read_object();
    if (c == '[') return read_array();
    if (c == '"') return events_.string(read_string());
    if (c == '-' || is_digit(c)) return read_number();
    for (const std::string_view word : {"true", "false", "null"})
      if (text_.substr(position_, word.size()) == word) {
        position_ += word.size();
        return events_.literal(word);
      }
    fail("expected a value");
  }

  void read_object() {
    ++position_;
    events_.start_object();
    skip_space();
    if (!consume('}')) {
      do {
        skip_space();
        if (peek() != '"') fail("expected a name in quotes");
        events_.key(read_string());
        expect(':');
        read_value();
        skip_space();
      } while (consume(','));
      expect('}');
    }
    events_.end_object();
  }

  void read_array() {
    events_.start_array(position_++);
    skip_space();
    if (!consume(']')) {
      do {
        read_value();
        skip_space();
      } while (consume(','));
      expect(']');
    }
    events_.end_array();
  }

  // A decoded string is never longer than in JSON, so it is put where it begins.
  std::string_view read_string() {
    const std::size_t begin = ++position_;
    end_ = begin;
    while (!consume('"')) {
      if (position_ >= text_.size()) fail("a string does not end");
      if (static_cast<unsigned char>(peek()) < 0x20) fail("a control character in a string");
      if (consume('\\')) {
        read_escape();
        continue;
      }
      const std::size_t length = utf8_length(text_, position_);
      if (length == 0) fail("not valid UTF-8");
      for (std::size_t i = 0; i < length; ++i) decoded_[end_++] = text_[position_++];
    }
    return text_.substr(begin, end_ - begin);
  }

  void read_escape() {
    constexpr std::string_view escapes = "\"\\/bfnrt", characters = "\"\\/\b\f\n\r\t";
    const auto add = [&](unsigned byte) { decoded_[end_++] = static_cast<char>(byte); };
    if (consume('u')) return encode_utf8(read_code_point(), add);
    const std::size_t which = escapes.find(peek());
    if (which == escapes.npos) fail("an unknown escape");
    decoded_[end_++] = characters[which];
    ++position_;
  }

  // A code point. One beyond U+FFFF takes two escapes, a surrogate pair.
  unsigned read_code_point() {
    const unsigned code = read_four_digits();
    if (code < 0xD800 || code > 0xDFFF) return code;
    if (code > 0xDBFF || !consume('\\') || !consume('u')) fail("half of a surrogate pair");
    const unsigned low = read_four_digits();
    if (low < 0xDC00 || low > 0xDFFF) fail("half of a surrogate pair");
    return 0x10000 + ((code - 0xD800) << 10U) + (low - 0xDC00);
  }

  unsigned read_four_digits() {
    unsigned code = 0;
    const char* const begin = text_.data() + position_;
    const bool enough = text_.size() - position_ >= 4;
    if (!enough || std::from_chars(begin, begin + 4, code, 16).ptr != begin + 4)
      fail("expected four hexadecimal digits");
    position_ += 4;
    return code;
  }

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  void read_digits() {
    if (!is_digit(peek())) fail("expected a digit");
    while (is_digit(peek())) ++position_;
  }

  void read_number() {
    const std::size_t begin = position_;
    bool natural = !consume('-');
    if (!consume('0')) read_digits();  // no digit may follow a leading 0
    if (consume('.')) {
      natural = false;
      read_digits();
    }
    if (peek() == 'e' || peek() == 'E') {
      natural = false;
      ++position_;
      if (!consume('+')) consume('-');
      read_digits();
    }
    emit_number(text_.substr(begin, position_ - begin), natural);
  }

  void emit_number(std::string_view text, bool natural) {
    std::uint64_t value = 0;
    const char* const end = text.data() + text.size();
    if (natural && std::from_chars(text.data(), end, value).ec == std::errc())
      return events_.natural_number(value);
    events_.other_number(text);
  }

  char* decoded_;  // the text, to be changed
  std::string_view text_;
  Events& events_;
  std::size_t position_ = 0;
  std::size_t end_ = 0;  // of the decoded part of a string
};

}  // namespace fw::io::detail
