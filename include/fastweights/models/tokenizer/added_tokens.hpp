#pragma once

#include <fastweights/models/config.hpp>
#include <fastweights/models/tokenizer/unicode.hpp>

/// \file
/// Tokens that are found in a text before it is split into words, such as <|im_start|>.

namespace fw::inline FASTWEIGHTS_ABI::models {

/// Finds added tokens: the leftmost, and the longest that begins there.
class AddedTokens {
 public:
  /// An added token, with the options that are in force.
  struct Token {
    std::string text;  ///< what is looked for
    int id;            ///< its id
    /// Matches only between characters that are no letters, marks, digits or _; takes spaces beside
    /// it.
    bool is_single_word, takes_left_space, takes_right_space;
  };

  /// Tokens of different texts; see twice().
  explicit AddedTokens(std::vector<Token> tokens = {}) : tokens_(std::move(tokens)) {
    std::sort(tokens_.begin(), tokens_.end(),
              [](const Token& a, const Token& b) { return a.text < b.text; });
  }
  /// Two tokens of the same text, or null.
  const Token* twice() const {
    const auto found =
        std::adjacent_find(tokens_.begin(), tokens_.end(),
                           [](const Token& a, const Token& b) { return a.text == b.text; });
    return found == tokens_.end() ? nullptr : &*found;
  }

  /// Calls text(part) and token(id) for the parts of a valid text in turn. Returns how many bytes
  /// it took for spaces beside tokens, at most two for each of the text: those that a token has
  /// seen are not read again.
  template <class Text, class Id>
  std::size_t split(std::string_view whole, const Text& text, const Id& token) const {
    std::size_t done = 0, spaces_end = 0;  // spaces_end: of the last spaces that a token took
    std::size_t spaces = 0;
    for (std::size_t position = 0; position < whole.size();) {
      const Token* found = longest_at(whole.substr(position));
      if (found == nullptr) {
        ++position;
        continue;
      }
      std::size_t begin = position;
      std::size_t end = position += found->text.size();
      if (found->is_single_word && is_within_word(whole, begin, end)) continue;
      if (found->takes_left_space && begin > done) {
        const std::size_t left = spaces_at_end(whole.substr(done, begin - done));
        begin -= left;
        spaces += left;
      }
      if (found->takes_right_space && end > spaces_end) {
        const std::size_t right = spaces_at_start(whole.substr(end));
        spaces_end = end + right;
        spaces += right;
      }
      if (found->takes_right_space) end = spaces_end;
      if (done < begin) text(whole.substr(done, begin - done));
      token(found->id);
      done = end;
    }
    if (done < whole.size()) text(whole.substr(done));
    return spaces;
  }

 private:
  // The tokens are sorted, so those that begin with the same bytes are neighbours.
  const Token* longest_at(std::string_view text) const {
    const Token* found = nullptr;
    auto begin = tokens_.begin(), end = tokens_.end();
    for (std::size_t n = 0; n < text.size() && begin != end; ++n) {
      const char byte = text[n];
      begin = std::lower_bound(begin, end, byte, [n](const Token& token, char c) {
        return token.text.size() == n || before(token.text[n], c);
      });
      end = std::upper_bound(begin, end, byte, [n](char c, const Token& token) {
        return token.text.size() > n && before(c, token.text[n]);
      });
      if (begin != end && begin->text.size() == n + 1) found = &*begin;
    }
    return found;
  }
  // The order of std::string.
  static bool before(char a, char b) {
    return static_cast<unsigned char>(a) < static_cast<unsigned char>(b);
  }

  static bool is_within_word(std::string_view whole, std::size_t begin, std::size_t end) {
    return (begin > 0 && is_word(first_point(last_character(whole.substr(0, begin))))) ||
           (end < whole.size() && is_word(first_point(whole.substr(end))));
  }
  static std::size_t spaces_at_end(std::string_view text) {
    const std::size_t size = text.size();
    while (!text.empty() && is_space(first_point(last_character(text))))
      text.remove_suffix(last_character(text).size());
    return size - text.size();
  }
  static std::size_t spaces_at_start(std::string_view text) {
    const std::size_t size = text.size();
    while (!text.empty() && is_space(first_point(text))) text.remove_prefix(utf8_start(text).bytes);
    return size - text.size();
  }

  std::vector<Token> tokens_;  // sorted by text
};

}  // namespace fw::models
