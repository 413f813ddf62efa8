#pragma once

#include <fastweights/models/end_tokens.hpp>
#include <fastweights/models/sampler.hpp>
#include <fastweights/models/tokenizer.hpp>
#include <fastweights/networks/network.hpp>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// Text that a published model writes, in one call:
///
///     const auto model = fw::models::load<float>(folder);
///     const auto tokenizer = fw::models::Tokenizer::read(folder / "tokenizer.json");
///     fw::generate(model, tokenizer, "In the beginning",
///                  {.max_tokens = 100,
///                   .temperature = 0.7,
///                   .stop = {"\n\n"},
///                   .end_tokens = fw::models::end_tokens(folder, model.outputs())},
///                  [](std::string_view text) { std::cout << text << std::flush; });

namespace fw::inline FASTWEIGHTS_ABI::models {

/// Options of generate. Those of sampling are those of SamplerOptions.
struct GenerateOptions {
  Index max_tokens = 128;           ///< to write
  double temperature = 1;           ///< 0: always the likeliest token
  Index top_k = 0;                  ///< only the k likeliest tokens; 0: all
  double top_p = 1;                 ///< only the likeliest with this sum
  double min_p = 0;                 ///< only those this likely beside the likeliest
  double repetition_penalty = 1;    ///< above 1: fewer tokens that the text has already
  std::uint64_t seed = 0;           ///< of the draws
  std::vector<std::string> stop{};  ///< texts before which the text ends: see StopTexts
  std::vector<int> end_tokens{};    ///< tokens before which the text ends: see end_tokens
  bool adds_special = true;         ///< to the prompt. False for a text of a ChatTemplate
  bool skips_special = true;        ///< in the text that is written
  Index chunk = 256;                ///< tokens of the prompt that are in memory at a time
};

/// Reasons for which a text ends.
enum class Ending {
  max_tokens,  ///< it has as many tokens as it may have
  end_token,   ///< an end token was drawn
  stop_text,   ///< a stop text was complete
  callback     ///< the callback of generate_ids said so
};

/// The result of generate.
struct Generated {
  std::string text;      ///< up to the stop text
  std::vector<int> ids;  ///< without the end token; of a stop text all that were drawn
  Ending ending = Ending::max_tokens;
};

/// Is given text as it comes: whole characters, and nothing of a stop text.
using TextCallback = std::function<void(std::string_view)>;

/// Draws tokens from a state and the logits of its last token, D_vocabulary. State and logits
/// continue with every token but the end token. `goes_on`: called for every token that was drawn;
/// false ends the text behind it. `past`: tokens before, for the repetition penalty. Throws
/// std::invalid_argument for an option or sizes that do not fit, before anything changes.
template <class S>
Generated generate_ids(const networks::Network<S>& network, networks::State& state,
                       Eigen::Matrix<S, Dynamic, 1>& logits, const GenerateOptions& options = {},
                       const std::function<bool(int)>& goes_on = {},
                       std::span<const int> past = {});

/// Draws tokens as generate_ids does, and gives their text. `past`: tokens before, for the
/// repetition penalty.
template <class S>
Generated generate(const networks::Network<S>& network, networks::State& state,
                   Eigen::Matrix<S, Dynamic, 1>& logits, const Tokenizer& tokenizer,
                   const GenerateOptions& options = {}, const TextCallback& callback = {},
                   std::span<const int> past = {});

/// Reads a prompt from a state and writes what comes next. The state has read the prompt and
/// Generated::ids then, so that another call continues from it. A prompt of ids is read as it is.
/// Throws std::invalid_argument for a prompt without tokens, a state of several sequences, or an
/// option that does not fit, before anything changes, and std::length_error when a cache is full.
template <class S>
Generated generate(const networks::Network<S>& network, networks::State& state,
                   const Tokenizer& tokenizer, std::span<const int> prompt,
                   const GenerateOptions& options = {}, const TextCallback& callback = {});
template <class S>
Generated generate(const networks::Network<S>& network, networks::State& state,
                   const Tokenizer& tokenizer, std::string_view prompt,
                   const GenerateOptions& options = {}, const TextCallback& callback = {});

/// Reads a prompt from the beginning of a text, and writes what comes next.
template <class S>
Generated generate(const networks::Network<S>& network, const Tokenizer& tokenizer,
                   std::span<const int> prompt, const GenerateOptions& options = {},
                   const TextCallback& callback = {});
template <class S>
Generated generate(const networks::Network<S>& network, const Tokenizer& tokenizer,
                   std::string_view prompt, const GenerateOptions& options = {},
                   const TextCallback& callback = {});

}  // namespace fw::models

namespace fw::inline FASTWEIGHTS_ABI {
using models::generate;
}

#ifndef FASTWEIGHTS_COMPILED_TEXT
#include <fastweights/models/implementation/generate.hpp>
#endif
