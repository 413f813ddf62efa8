#pragma once

#include <array>
#include <fastweights/models/tokenizer/unicode.hpp>

/// \file
/// The letters that stand for bytes in a byte-level vocabulary: Radford et al. 2019, Language
/// Models are Unsupervised Multitask Learners (GPT-2). A visible byte of Latin-1 is its own letter;
/// the others are U+0100, U+0101, … in turn.

namespace fw::inline FASTWEIGHTS_ABI::models {

/// The letter that stands for each byte, and the byte of each letter.
struct ByteToUnicode {
  std::array<utf8proc_int32_t, 256> letter{};  ///< by byte
  std::array<int, 0x144> byte{};               ///< −1 where a letter stands for none

  /// Computes both tables.
  constexpr ByteToUnicode() {
    byte.fill(-1);
    utf8proc_int32_t next = 0x100;
    for (int b = 0; b < 256; ++b) {
      const bool is_visible =
          (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
      const auto i = static_cast<std::size_t>(b);
      letter[i] = is_visible ? b : next++;
      byte[static_cast<std::size_t>(letter[i])] = b;
    }
  }
};

/// The tables.
inline constexpr ByteToUnicode byte_to_unicode;

/// The letters of bytes, as UTF-8.
inline std::string letters_of(std::string_view bytes) {
  std::string letters;
  for (const char c : bytes) {
    utf8proc_uint8_t letter[4];
    const auto length = static_cast<std::size_t>(
        utf8proc_encode_char(byte_to_unicode.letter[static_cast<unsigned char>(c)], letter));
    letters.append(reinterpret_cast<const char*>(letter), length);
  }
  return letters;
}

/// The bytes that the letters of a token stand for; a token of other letters stands for itself.
inline std::string bytes_of(const std::string& token) {
  std::string bytes;
  for (std::string_view rest = token; !rest.empty();) {
    const auto point = static_cast<std::size_t>(first_point(rest));
    if (point >= byte_to_unicode.byte.size() || byte_to_unicode.byte[point] < 0) return token;
    bytes += static_cast<char>(byte_to_unicode.byte[point]);
    rest.remove_prefix(utf8_start(rest).bytes);
  }
  return bytes;
}

}  // namespace fw::models
