#pragma once

#include <array>
#include <cmath>
#include <fstream>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

/// A text as symbol numbers: every different byte is a symbol, in the order of its value.
struct Text {
  std::string alphabet;      ///< the byte of each symbol
  std::vector<int> symbols;  ///< the text
  std::size_t train = 0;     ///< symbols to train on; the last 5 % are to validate on

  std::span<const int> training() const { return std::span(symbols).first(train); }
  std::span<const int> validation() const { return std::span(symbols).subspan(train); }
  int size() const { return static_cast<int>(alphabet.size()); }
};

/// The symbols of `bytes` in an alphabet. Throws std::invalid_argument for a byte outside it.
inline std::vector<int> encode(const std::string& bytes, const std::string& alphabet) {
  std::array<int, 256> number{};
  number.fill(-1);
  for (std::size_t i = 0; i < alphabet.size(); ++i)
    number[static_cast<unsigned char>(alphabet[i])] = static_cast<int>(i);
  std::vector<int> symbols;
  symbols.reserve(bytes.size());
  for (const char c : bytes) {
    symbols.push_back(number[static_cast<unsigned char>(c)]);
    if (symbols.back() < 0)
      throw std::invalid_argument(std::string("the text has no '") + c + "' in its alphabet");
  }
  return symbols;
}

inline Text make_text(const std::string& bytes) {
  std::array<bool, 256> seen{};
  for (const char c : bytes) seen[static_cast<unsigned char>(c)] = true;
  Text text;
  for (int c = 0; c < 256; ++c)
    if (seen[static_cast<std::size_t>(c)]) text.alphabet += static_cast<char>(c);
  text.symbols = encode(bytes, text.alphabet);
  text.train = bytes.size() - bytes.size() / 20;
  return text;
}

inline Text read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw std::runtime_error(
        "cannot read the text '" + path +
        "': script/parts/text FILE writes the King James Bible, --text FILE names "
        "any other");
  return make_text(std::string(std::istreambuf_iterator<char>(file), {}));
}

/// The entropy of single symbols in bits, which a model without memory reaches.
inline double unigram_entropy(std::span<const int> symbols) {
  std::vector<double> count(256, 0.0);
  for (const int s : symbols) count[static_cast<std::size_t>(s)] += 1;
  double bits = 0;
  for (const double n : count)
    if (n > 0) bits -= n * std::log2(n / static_cast<double>(symbols.size()));
  return bits / static_cast<double>(symbols.size());
}
