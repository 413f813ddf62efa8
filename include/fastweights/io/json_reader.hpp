#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "fastweights/io/json_text.hpp"

/// \file
/// A strict reader of JSON (RFC 8259) by events. It builds no document: what receives the events
/// sees duplicate names, and refuses nesting at the first bracket too many. A library for all of
/// JSON costs each source that reads a file several seconds to compile.

namespace fw::io::detail {

/// What is not JSON; the message says at which byte.
class JsonError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What a reader finds, in order. A receiver throws at what its format does not allow.
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

/// Reads one value, and nothing behind it but white space. The receiver bounds the nesting. Throws
/// JsonError.
class JsonReader {
 public:
  JsonReader(std::string_view text, JsonEvents& events) : text_(text), events_(events) {}

  void read() {
    read_value();
    skip_space();
    if (at_ < text_.size()) fail("expected the end");
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw JsonError("parse error at byte " + std::to_string(at_) + ": " + what);
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) {
    if (peek() != c || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }
  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\n\r").find(text_[at_]) != text_.npos) ++at_;
  }
  void expect(char c) {
    skip_space();
    if (!take(c)) fail(std::string("expected '") + c + "'");
  }

  void read_value() {
    skip_space();
    const char c = peek();
    if (c == '{') return read_object();
    if (c == '[') return read_array();
    if (c == '"') return events_.string(read_string());
    if (c == '-' || is_digit(c)) return read_number();
    for (const std::string_view word : {"true", "false", "null"})
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return events_.literal(word);
      }
    fail("expected a value");
  }

  void read_object() {
    ++at_;
    events_.start_object();
    skip_space();
    if (!take('}')) {
      do {
        skip_space();
        if (peek() != '"') fail("expected a name in quotes");
        events_.key(read_string());
        expect(':');
        read_value();
        skip_space();
      } while (take(','));
      expect('}');
    }
    events_.end_object();
  }

  void read_array() {
    ++at_;
    events_.start_array();
    skip_space();
    if (!take(']')) {
      do {
        read_value();
        skip_space();
      } while (take(','));
      expect(']');
    }
    events_.end_array();
  }

  std::string read_string() {
    std::string value;
    ++at_;
    while (!take('"')) {
      if (at_ >= text_.size()) fail("a string does not end");
      if (static_cast<unsigned char>(peek()) < 0x20) fail("a control character in a string");
      if (take('\\')) {
        read_escape(value);
        continue;
      }
      const std::size_t length = utf8_length(text_, at_);
      if (length == 0) fail("not valid UTF-8");
      value += text_.substr(at_, length);
      at_ += length;
    }
    return value;
  }

  void read_escape(std::string& value) {
    constexpr std::string_view escapes = "\"\\/bfnrt", characters = "\"\\/\b\f\n\r\t";
    if (take('u')) return append_utf8(value, read_code());
    const std::size_t which = at_ < text_.size() ? escapes.find(text_[at_]) : escapes.npos;
    if (which == escapes.npos) fail("an unknown escape");
    value += characters[which];
    ++at_;
  }

  // The number of a character: two escapes for one beyond U+FFFF.
  unsigned read_code() {
    const unsigned code = read_four_digits();
    if (code < 0xD800 || code > 0xDFFF) return code;
    if (code > 0xDBFF || !take('\\') || !take('u')) fail("half of a surrogate pair");
    const unsigned low = read_four_digits();
    if (low < 0xDC00 || low > 0xDFFF) fail("half of a surrogate pair");
    return 0x10000 + ((code - 0xD800) << 10U) + (low - 0xDC00);
  }

  unsigned read_four_digits() {
    unsigned code = 0;
    const char* const begin = text_.data() + at_;
    const bool enough = text_.size() - at_ >= 4;
    if (!enough || std::from_chars(begin, begin + 4, code, 16).ptr != begin + 4)
      fail("expected four hexadecimal digits");
    at_ += 4;
    return code;
  }

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  void read_digits() {
    if (!is_digit(peek())) fail("expected a digit");
    while (is_digit(peek())) ++at_;
  }

  void read_number() {
    const std::size_t begin = at_;
    bool natural = !take('-');
    if (!take('0')) read_digits();  // no other digit follows a leading 0
    if (take('.')) {
      natural = false;
      read_digits();
    }
    if (peek() == 'e' || peek() == 'E') {
      natural = false;
      ++at_;
      if (!take('+')) take('-');
      read_digits();
    }
    emit_number(text_.substr(begin, at_ - begin), natural);
  }

  void emit_number(std::string_view text, bool natural) {
    std::uint64_t value = 0;
    const char* const end = text.data() + text.size();
    if (natural && std::from_chars(text.data(), end, value).ec == std::errc())
      return events_.natural_number(value);
    double size = 0;
    if (std::from_chars(text.data(), end, size).ec != std::errc() && is_large(text))
      fail("number overflow");
    events_.other_number(text);
  }
  // Of a number that a double cannot hold: too large, and not too near 0.
  static bool is_large(std::string_view text) {
    const std::size_t exponent = text.find_first_of("eE");
    return exponent == text.npos || text.substr(exponent + 1, 1) != "-";
  }

  std::string_view text_;
  JsonEvents& events_;
  std::size_t at_ = 0;
};

}  // namespace fw::io::detail
