#pragma once

#include <fastweights/models/chat_template/bounds.hpp>
#include <fastweights/models/chat_template/characters.hpp>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// A template as tokens, with jinja2's options trim_blocks and lstrip_blocks.

namespace fw::inline FASTWEIGHTS_ABI::models::chat {

/// A token. Text outside of {{ }} and {% %} is one.
struct Token {
  /// The kind of the token.
  enum Type { data, begin_output, begin_block, end, name, text, integer, real, sign, finish };
  Type type;
  std::string content;
  int line;
  /// True if it is this sign or name.
  bool is(Type type_, std::string_view content_) const {
    return type == type_ && content == content_;
  }
};

/// Cuts a template into tokens. Throws std::invalid_argument with the line.
class Lexer {
 public:
  Lexer(std::string_view source, Costs& costs) : costs_(costs) {
    if (source.size() > Bounds::template_bytes)
      costs.fail("the template has more than " + std::to_string(Bounds::template_bytes) + " bytes");
    // One kind of line end, and none behind the last line.
    for (std::size_t i = 0; i < source.size(); ++i) {
      if (source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n') continue;
      source_ += source[i] == '\r' ? '\n' : source[i];
    }
    if (source_.ends_with('\n')) source_.pop_back();
  }

  std::vector<Token> tokens() {
    while (at_ < source_.size()) {
      const std::size_t begin = next_begin();
      const char kind = begin < source_.size() ? source_[begin + 1] : '\0';
      add_data(begin, kind);
      if (kind == '#') skip_comment();
      if (kind == '{') add(Token::begin_output, "{{", 2), inside("}}");
      if (kind == '%') add(Token::begin_block, "{%", 2), inside("%}");
    }
    add(Token::finish, "the end of the template", 0);
    return std::move(tokens_);
  }

 private:
  std::size_t next_begin() const {
    for (std::size_t i = at_; (i = source_.find('{', i)) != std::string::npos; ++i)
      if (i + 1 < source_.size() &&
          std::string_view("{%#").find(source_[i + 1]) != std::string_view::npos)
        return i;
    return source_.size();
  }
  char sign_at(std::size_t i) const {
    return i < source_.size() && (source_[i] == '-' || source_[i] == '+') ? source_[i] : '\0';
  }

  // The text up to a begin; spaces before it are left out as its sign says.
  void add_data(std::size_t begin, char kind) {
    std::string_view data = std::string_view(source_).substr(at_, begin - at_);
    const char sign = kind == '\0' ? '\0' : sign_at(begin + 2);
    if (sign == '-') {
      data = stripped(data, {}, false, true);
    } else if (sign == '\0' && (kind == '%' || kind == '#')) {
      const std::size_t line = data.rfind('\n') + 1;  // 0 without one
      if ((line > 0 || starts_line_) && stripped(data.substr(line)).empty())
        data = data.substr(0, line);
    }
    if (!data.empty()) tokens_.push_back({Token::data, std::string(data), line_});
    move_to(begin);
  }
  void move_to(std::size_t end) {
    for (; at_ < end; ++at_) line_ += source_[at_] == '\n';
  }
  void add(Token::Type type, std::string content, std::size_t size) {
    tokens_.push_back({type, std::move(content), line_});
    move_to(at_ + size);
  }
  [[noreturn]] void fail(const std::string& what) const {
    costs_.at(line_);
    costs_.fail(what);
  }

  // Behind %} and #} a line end is left out, behind -%} all spaces.
  void finish_tag(char sign, bool trims) {
    const std::size_t before = at_;
    if (sign == '-') {
      const auto rest = std::string_view(source_).substr(at_);
      move_to(source_.size() - stripped(rest, {}, true, false).size());
    } else if (sign == '\0' && trims && at_ < source_.size() && source_[at_] == '\n') {
      move_to(at_ + 1);
    }
    starts_line_ = at_ > before && source_[at_ - 1] == '\n';
  }
  void skip_comment() {
    const std::size_t end = source_.find("#}", at_ + 2);
    if (end == std::string::npos) fail("a comment has no end, expected #}");
    const char sign = end > at_ + 2 ? sign_at(end - 1) : '\0';
    move_to(end + 2);
    finish_tag(sign, true);
  }

  // The tokens up to an end, which is none inside of brackets.
  void inside(std::string_view end) {
    if (sign_at(at_) != '\0') move_to(at_ + 1);
    std::vector<char> brackets;
    while (true) {
      const auto rest = [&] { return std::string_view(source_).substr(at_); };
      while (!rest().empty() && is_space_byte(rest()[0])) move_to(at_ + 1);
      if (rest().empty()) fail("a tag has no end, expected " + std::string(end));
      const bool is_signed = sign_at(at_) != '\0' && (end == "%}" || rest()[0] == '-');
      if (brackets.empty() && rest().substr(is_signed).starts_with(end)) {
        const char sign = is_signed ? rest()[0] : '\0';
        add(Token::end, std::string(end), 2 + std::size_t(is_signed));
        return finish_tag(sign, end == "%}");
      }
      add_token(rest(), brackets);
    }
  }

  void add_token(std::string_view rest, std::vector<char>& brackets) {
    const char c = rest[0];
    if (is_letter(c)) {
      std::size_t n = 1;
      while (n < rest.size() && (is_letter(rest[n]) || is_digit(rest[n]))) ++n;
      return add(Token::name, std::string(rest.substr(0, n)), n);
    }
    if (is_digit(c)) return add_number(rest);
    if (c == '"' || c == '\'') return add_text(rest);
    for (const std::string_view two : {"//", "**", "==", "!=", ">=", "<="})
      if (rest.starts_with(two)) return add(Token::sign, std::string(two), 2);
    if (std::string_view("+-/*%~[](){}><=.:|,").find(c) == std::string_view::npos)
      fail("the character " + std::string(rest.substr(0, 1)) + " is not expected");
    balance(c, brackets);
    add(Token::sign, std::string(1, c), 1);
  }
  void balance(char c, std::vector<char>& brackets) const {
    if (c == '(' || c == '[' || c == '{') brackets.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
    if (c != ')' && c != ']' && c != '}') return;
    if (brackets.empty() || brackets.back() != c)
      fail(std::string("the bracket ") + c + " has no beginning");
    brackets.pop_back();
  }
  void add_number(std::string_view rest) {
    std::size_t n = 0;
    while (n < rest.size() && is_digit(rest[n])) ++n;
    bool is_real = n + 1 < rest.size() && rest[n] == '.' && is_digit(rest[n + 1]);
    if (is_real)
      for (++n; n < rest.size() && is_digit(rest[n]);) ++n;
    if (n < rest.size() && (rest[n] == 'e' || rest[n] == 'E')) {
      std::size_t digits = n + 1;
      if (digits < rest.size() && (rest[digits] == '-' || rest[digits] == '+')) ++digits;
      const std::size_t first = digits;
      while (digits < rest.size() && is_digit(rest[digits])) ++digits;
      if (digits > first) n = digits, is_real = true;
    }
    if (n < rest.size() && is_letter(rest[n])) fail("a number of this form is not supported");
    add(is_real ? Token::real : Token::integer, std::string(rest.substr(0, n)), n);
  }
  void add_text(std::string_view rest) {
    std::size_t n = 1;
    while (n < rest.size() && rest[n] != rest[0]) n += rest[n] == '\\' ? 2 : 1;
    if (n >= rest.size()) fail("a text has no end");
    add(Token::text, unescaped(rest.substr(1, n - 1)), n + 1);
  }

  // Python's escapes.
  std::string unescaped(std::string_view text) const {
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\\') {
        result += text[i];
        continue;
      }
      constexpr std::string_view letters = "\\'\"nrtabfv0", values = "\\'\"\n\r\t\a\b\f\v";
      const char c = text[++i];
      const std::size_t known = letters.find(c);
      if (known < values.size())
        result += values[known];
      else if (c == 'x' || c == 'u' || c == 'U')
        add_point(result, text, i, c == 'x' ? 2 : c == 'u' ? 4 : 8);
      else if (c == 'N' || is_digit(c))
        fail(std::string("the escape \\") + c + " is not supported");
      else if (c != '\n')
        (result += '\\') += c;
    }
    return result;
  }
  void add_point(std::string& result, std::string_view text, std::size_t& i,
                 std::size_t digits) const {
    std::uint32_t point = 0;
    for (std::size_t k = 0; k < digits; ++k) {
      const char c = ++i < text.size() ? text[i] : '\0';
      const std::size_t value =
          std::string_view("0123456789abcdef").find(c >= 'A' && c <= 'F' ? char(c + 32) : c);
      if (c == '\0' || value == std::string_view::npos || point >> 28)
        fail("an escape needs " + std::to_string(digits) + " hexadecimal digits");
      point = point * 16 + static_cast<std::uint32_t>(value);
    }
    if (point > 0x10FFFF || (point >= 0xD800 && point < 0xE000)) fail("an escape is no character");
    append_point(result, point);
  }

  Costs& costs_;
  std::string source_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool starts_line_ = true;
  std::vector<Token> tokens_;
};

}  // namespace fw::models::chat
