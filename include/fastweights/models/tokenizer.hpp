#pragma once

#include <fastweights/core/errors.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// The byte-level tokenizer of a published model, read from its tokenizer.json. Link pcre2-8 and
/// utf8proc. A program that links fastweights::compiled_models does not compile it again; any other
/// program includes nlohmann-json, PCRE2 and utf8proc with it.

namespace fw::inline FASTWEIGHTS_ABI::models {

class ByteLevelTokenizer;

/// Token ids of texts and texts of token ids, the same as the Python package tokenizers. Supported:
/// byte pair encoding; normalizer none or NFC; pre_tokenizer Split, Digits and ByteLevel; decoder
/// ByteLevel; post_processor none, ByteLevel or TemplateProcessing of one text, with at most 1024
/// tokens around it. Anything else is refused. truncation and padding are not applied, as in
/// transformers.
///
/// Bytes that are not UTF-8 are read as U+FFFD, like Python's errors="replace". What a character is
/// (a letter, a digit) depends on the Unicode version of PCRE2. encode takes O(n log n) of the
/// text's n bytes, and refuses a text for which expressions take more than PatternSteps. All
/// functions throw std::invalid_argument, which names the file and the entry. A tokenizer does not
/// change, so threads may share it.
class Tokenizer {
 public:
  /// From a file, of at most 64 MiB.
  static Tokenizer read(const std::filesystem::path& file);
  /// From the text of a file. `where` is what errors begin with.
  static Tokenizer parse(const std::string& text, const std::string& where = "tokenizer.json");
  /// Copies share what was read.
  Tokenizer(const Tokenizer&) = default;
  Tokenizer& operator=(const Tokenizer&) = default;

  /// `adds_special`: with the tokens of the post_processor, such as one at the beginning.
  std::vector<int> encode(std::string_view text, bool adds_special = true) const;
  /// Ids without a token add nothing. `skips_special`: special tokens add nothing either. Bytes
  /// that are not UTF-8 become U+FFFD.
  std::string decode(std::span<const int> ids, bool skips_special = true) const;
  /// The id of a token, or nothing. Tokens of the model are in letters for bytes.
  std::optional<int> id_of(std::string_view token) const;
  /// One more than the largest id.
  std::size_t size() const;
  /// True if the id is that of a special token.
  bool is_special(int id) const;
  /// The bytes of a token, which need not be whole characters; empty if the id has none.
  const std::string& bytes_of_id(int id) const;

 private:
  explicit Tokenizer(std::shared_ptr<const ByteLevelTokenizer> read);

  std::shared_ptr<const ByteLevelTokenizer> read_;
};

/// The text of a sequence of tokens as they come. A character that is split over tokens comes with
/// the last of them.
class StreamDecoder {
 public:
  /// The tokenizer must outlive this.
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skips_special = true)
      : tokenizer_(tokenizer), skips_special_(skips_special) {}

  /// The characters that are complete with this token. All that is added and the end together are
  /// what Tokenizer::decode returns.
  std::string add(int id);
  /// U+FFFD if a character is incomplete, otherwise nothing. A new text begins afterwards.
  std::string finish();

 private:
  std::string text(bool is_end);

  const Tokenizer& tokenizer_;
  bool skips_special_;
  std::string bytes_;  // of a character that is not complete, at most 3
};

}  // namespace fw::models

#ifndef FASTWEIGHTS_COMPILED_TEXT
#include <fastweights/models/implementation/tokenizer.hpp>
#endif
