#pragma once

#include <fastweights/models/tokenizer.hpp>
#include <fastweights/models/tokenizer/byte_to_unicode.hpp>

#include "models_io/built.hpp"
#include "models_io/seven_symbols.hpp"

/// \file
/// A small model of bytes and its tokenizer: ids 0 to 255 are bytes, 256 is "ab", 257 "<s>".

namespace byte_model {

using fw::Index;
using fw::models::Tokenizer;
using seven_symbols::Network;

constexpr Index vocabulary = 258;
constexpr int special = 257;

/// The network with random weights. Large weights of the head make it sure of its tokens.
inline Network network(const fw::models::ModelOptions& options = {}) {
  return seven_symbols::drawn(built(one_attention(vocabulary), options));
}

/// The tokenizer as the text of its file.
inline Tokenizer tokenizer() {
  nlohmann::json words;
  for (int b = 0; b < 256; ++b) {
    const char byte = static_cast<char>(b);
    words[fw::models::letters_of({&byte, 1})] = b;
  }
  words["ab"] = 256;
  const nlohmann::json file{
      {"version", "1.0"},
      {"added_tokens",
       nlohmann::json::array({{{"id", special}, {"content", "<s>"}, {"special", true}}})},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
      {"decoder", {{"type", "ByteLevel"}}},
      {"post_processor",
       {{"type", "TemplateProcessing"},
        {"single", {{{"SpecialToken", {{"id", "<s>"}}}}, {{"Sequence", {{"id", "A"}}}}}},
        {"special_tokens", {{"<s>", {{"ids", {special}}}}}}}},
      {"model", {{"type", "BPE"}, {"vocab", words}, {"merges", {"a b"}}}}};
  return Tokenizer::parse(file.dump());
}

}  // namespace byte_model
