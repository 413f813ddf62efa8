/// Reads a prompt and draws tokens: see generate.hpp.
#pragma once

#include <algorithm>
#include <fastweights/models/generate.hpp>
#include <fastweights/models/stop_texts.hpp>

namespace fw::inline FASTWEIGHTS_ABI::models {
namespace detail {

inline Sampler sampler_of(const GenerateOptions& options) {
  return Sampler({.temperature = options.temperature,
                  .top_k = options.top_k,
                  .top_p = options.top_p,
                  .min_p = options.min_p,
                  .repetition_penalty = options.repetition_penalty,
                  .seed = options.seed});
}

inline void check_generate(const GenerateOptions& options, Index vocabulary, Index sequences) {
  const auto fail = [](const std::string& name, Index given, const std::string& expected) {
    fw::detail::throw_invalid(
        {"generate: ", name, " is ", std::to_string(given), ", expected ", expected});
  };
  if (options.max_tokens < 0) fail("max_tokens", options.max_tokens, "at least 0");
  if (options.chunk < 1) fail("chunk", options.chunk, "at least 1");
  if (sequences != 1) fail("the number of the state's sequences", sequences, "1");
  for (const int id : options.end_tokens)
    if (id < 0 || id >= vocabulary)
      fail("an end token", id, "0 to " + std::to_string(vocabulary - 1));
  sampler_of(options);
  StopTexts(options.stop);
}

}  // namespace detail

template <class S>
Generated generate_ids(const networks::Network<S>& network, networks::State& state,
                       Eigen::Matrix<S, Dynamic, 1>& logits, const GenerateOptions& options,
                       const std::function<bool(int)>& goes_on, std::span<const int> past) {
  detail::check_generate(options, network.outputs(), state.sequences());
  if (logits.size() != network.outputs())
    fw::detail::throw_mismatch("generate", "logits", logits.size(), "rows", network.outputs(),
                               "the network");
  Sampler draw = detail::sampler_of(options);
  std::vector<int> text(past.begin(), past.end());
  typename networks::Network<S>::Trace trace;
  Generated result;
  const std::vector<int>& ends = options.end_tokens;
  while (static_cast<Index>(result.ids.size()) < options.max_tokens) {
    const int id = draw(logits, text);
    if (std::find(ends.begin(), ends.end(), id) != ends.end()) {
      result.ending = Ending::end_token;
      break;
    }
    network.forward(state, Symbols(&id, 1), logits, trace);
    result.ids.push_back(id);
    text.push_back(id);
    if (goes_on && !goes_on(id)) {
      result.ending = Ending::callback;
      break;
    }
  }
  return result;
}

template <class S>
Generated generate(const networks::Network<S>& network, networks::State& state,
                   Eigen::Matrix<S, Dynamic, 1>& logits, const Tokenizer& tokenizer,
                   const GenerateOptions& options, const TextCallback& callback,
                   std::span<const int> past) {
  StopTexts stops(options.stop);
  StreamDecoder decoder(tokenizer, options.skips_special);
  std::string text;
  const auto pass_on = [&](const std::string& piece) {
    text += piece;
    if (callback && !piece.empty()) callback(piece);
  };
  const auto add = [&](int id) {
    pass_on(stops.add(decoder.add(id)));
    return !stops.found();
  };
  Generated result = generate_ids<S>(network, state, logits, options, add, past);
  if (!stops.found()) pass_on(stops.add(decoder.finish()));
  if (stops.found()) result.ending = Ending::stop_text;
  pass_on(stops.finish());
  result.text = std::move(text);
  return result;
}

template <class S>
Generated generate(const networks::Network<S>& network, networks::State& state,
                   const Tokenizer& tokenizer, std::span<const int> prompt,
                   const GenerateOptions& options, const TextCallback& callback) {
  detail::check_generate(options, network.outputs(), state.sequences());
  if (prompt.empty())
    fw::detail::throw_invalid({"generate: the prompt has no tokens, expected at least 1"});
  Eigen::Matrix<S, Dynamic, 1> logits(network.outputs());
  {
    typename networks::Network<S>::Trace trace;  // of a piece, which is large
    network.prefill(state, Symbols(prompt), logits, trace, options.chunk);
  }
  return generate<S>(network, state, logits, tokenizer, options, callback, prompt);
}

template <class S>
Generated generate(const networks::Network<S>& network, networks::State& state,
                   const Tokenizer& tokenizer, std::string_view prompt,
                   const GenerateOptions& options, const TextCallback& callback) {
  const std::vector<int> ids = tokenizer.encode(prompt, options.adds_special);
  return generate<S>(network, state, tokenizer, std::span<const int>(ids), options, callback);
}

template <class S>
Generated generate(const networks::Network<S>& network, const Tokenizer& tokenizer,
                   std::span<const int> prompt, const GenerateOptions& options,
                   const TextCallback& callback) {
  networks::State state = network.initial_state();
  return generate<S>(network, state, tokenizer, prompt, options, callback);
}

template <class S>
Generated generate(const networks::Network<S>& network, const Tokenizer& tokenizer,
                   std::string_view prompt, const GenerateOptions& options,
                   const TextCallback& callback) {
  networks::State state = network.initial_state();
  return generate<S>(network, state, tokenizer, prompt, options, callback);
}

}  // namespace fw::models
