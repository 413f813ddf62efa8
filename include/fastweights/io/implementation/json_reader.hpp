#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "fastweights/io/implementation/json_text.hpp"

/// \file
/// A strict, event-based reader of JSON (RFC 8259). It builds no document, so the receiver of the
/// events sees duplicate names and can refuse nesting at the first bracket. A complete JSON library
/// adds several seconds to the compile time of every source that reads a file.

namespace fw::inline FASTWEIGHTS_ABI::io::detail {

/// The text is not JSON. The message says at which byte.
class JsonError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Receives the parts of a text in order. It throws at an event that its format does not allow.
class JsonEvents {
 public:
  virtual void start_object() = 0;
  virtual void key(std::string name) = 0;
  virtual void end_object() = 0;
  virtual void start_array() = 0;
  virtual void end_array() = 0;
  virtual void string(std::string value) = 0;
  virtual void natural_number(std::uint64_t value) = 0;
  virtual void other_number(std::string_view text) = 0;
  virtual void literal(std::string_view word) = 0;  ///< true, false or null

 protected:
  ~JsonEvents() = default;
};

/// Reads one value, which only white space may follow. The receiver has to limit the nesting, since
/// the reader is recursive. Throws JsonError.
class JsonReader {
 public:
  JsonReader(std::string_view text, JsonEvents& events) : text_(text), events_(events) {}

  void read() {
    read_value();
    skip_space();
    if (position_ < text_.size()) fail("expected the end");
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw JsonError("parse error at byte " + std::to_string(position_) + ": " + what);
  }

  char peek() const { return position_ < text_.size() ? text_[position_] : '\0'; }
  bool consume(char c) {
    if (peek() != c || position_ >= text_.size()) return false;
    ++position_;
    return true;
  }
  void skip_space() {
    while (position_ < text_.size() &&
           std::string_view(" \t\n\r").find(text_[position_]) != text_.npos)
      ++position_;
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
    ++position_;
    events_.start_array();
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

  std::string read_string() {
    std::string value;
    ++position_;
    while (!consume('"')) {
      if (position_ >= text_.size()) fail("a string does not end");
      if (static_cast<unsigned char>(peek()) < 0x20) fail("a control character in a string");
      if (consume('\\')) {
        read_escape(value);
        continue;
      }
      const std::size_t length = utf8_length(text_, position_);
      if (length == 0) fail("not valid UTF-8");
      value += text_.substr(position_, length);
      position_ += length;
    }
    return value;
  }

  void read_escape(std::string& value) {
    constexpr std::string_view escapes = "\"\\/bfnrt", characters = "\"\\/\b\f\n\r\t";
    if (consume('u')) return append_utf8(value, read_code_point());
    const std::size_t which =
        position_ < text_.size() ? escapes.find(text_[position_]) : escapes.npos;
    if (which == escapes.npos) fail("an unknown escape");
    value += characters[which];
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
    double number = 0;
    if (std::from_chars(text.data(), end, number).ec != std::errc() && is_large(text))
      fail("number overflow");
    events_.other_number(text);
  }
  // Tells why a double cannot hold a number: it is too large, or else too close to 0.
  static bool is_large(std::string_view text) {
    const std::size_t exponent = text.find_first_of("eE");
    return exponent == text.npos || text.substr(exponent + 1, 1) != "-";
  }

  std::string_view text_;
  JsonEvents& events_;
  std::size_t position_ = 0;
};

}  // namespace fw::io::detail
