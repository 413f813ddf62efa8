/// The functions of a Tokenizer: see tokenizer.hpp.
#pragma once

#include <fastweights/models/implementation/inline.hpp>
#include <fastweights/models/tokenizer.hpp>
#include <fastweights/models/tokenizer/byte_level.hpp>

namespace fw::inline FASTWEIGHTS_ABI::models {

FASTWEIGHTS_TEXT_INLINE Tokenizer::Tokenizer(std::shared_ptr<const ByteLevelTokenizer> read)
    : read_(std::move(read)) {}
FASTWEIGHTS_TEXT_INLINE Tokenizer Tokenizer::read(const std::filesystem::path& file) {
  return Tokenizer(std::make_shared<ByteLevelTokenizer>(ByteLevelTokenizer::read(file)));
}
FASTWEIGHTS_TEXT_INLINE Tokenizer Tokenizer::parse(const std::string& text,
                                                   const std::string& where) {
  return Tokenizer(std::make_shared<ByteLevelTokenizer>(ByteLevelTokenizer::parse(text, where)));
}
FASTWEIGHTS_TEXT_INLINE std::vector<int> Tokenizer::encode(std::string_view text,
                                                           bool adds_special) const {
  return read_->encode(text, adds_special);
}
FASTWEIGHTS_TEXT_INLINE std::string Tokenizer::decode(std::span<const int> ids,
                                                      bool skips_special) const {
  return read_->decode(ids, skips_special);
}
FASTWEIGHTS_TEXT_INLINE std::optional<int> Tokenizer::id_of(std::string_view token) const {
  return read_->id_of(token);
}
FASTWEIGHTS_TEXT_INLINE std::size_t Tokenizer::size() const { return read_->size(); }
FASTWEIGHTS_TEXT_INLINE bool Tokenizer::is_special(int id) const { return read_->is_special(id); }
FASTWEIGHTS_TEXT_INLINE const std::string& Tokenizer::bytes_of_id(int id) const {
  return read_->bytes_of_id(id);
}

FASTWEIGHTS_TEXT_INLINE std::string StreamDecoder::add(int id) {
  if (!skips_special_ || !tokenizer_.is_special(id)) bytes_ += tokenizer_.bytes_of_id(id);
  return text(false);
}
FASTWEIGHTS_TEXT_INLINE std::string StreamDecoder::finish() { return text(true); }
FASTWEIGHTS_TEXT_INLINE std::string StreamDecoder::text(bool is_end) {
  std::string characters;
  move_characters(bytes_, characters, is_end);
  return characters;
}

}  // namespace fw::models
