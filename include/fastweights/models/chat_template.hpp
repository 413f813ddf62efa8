#pragma once

#include <ctime>
#include <fastweights/core/errors.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

/// \file
/// The chat template of a published model: the text that its messages become. Needs nlohmann-json;
/// link utf8proc.
///
///     const auto chat = fw::models::ChatTemplate::read(folder);
///     const std::string text = chat.render({{{"role", "user"}, {"content", "Hello"}}},
///                                          {.add_generation_prompt = true});

namespace fw::inline FASTWEIGHTS_ABI::models {

/// JSON whose names keep their order.
using OrderedJson = nlohmann::ordered_json;

/// Options of ChatTemplate::render.
struct ChatOptions {
  bool add_generation_prompt = false;             ///< ends with what begins an answer
  OrderedJson tools = nullptr;                    ///< a list of JSON schemas
  OrderedJson variables = OrderedJson::object();  ///< others, such as enable_thinking
  std::optional<std::time_t> now{};               ///< of strftime_now; absent: the time of the call
};

/// A template of the language Jinja, in the environment of transformers' apply_chat_template.
///
/// Supported: if, for (with a condition, else, break, continue), set (also of a block), macro,
/// call, filter, with, generation; all operators but **; the filters, tests and methods that
/// docs/pytorch.md lists. Anything else is an error that names it with the line: at reading for a
/// statement or an operator, at rendering for the others.
///
/// A message takes the names reasoning_content, thinking and reasoning for the same, and entries of
/// a message that are null are left out, as in transformers.
///
/// A template may be hostile: see Bounds in chat_template/bounds.hpp. All functions throw
/// std::invalid_argument. A template does not change, so threads may share it; strftime_now calls
/// std::localtime.
class ChatTemplate {
 public:
  /// From a folder: chat_template.jinja, else chat_template of tokenizer_config.json, a text or a
  /// list of templates with names: "default", and "tool_use" for messages with tools. Special
  /// tokens such as bos_token are those of tokenizer_config.json.
  static ChatTemplate read(const std::filesystem::path& folder);
  /// From a text. `tokens`: variables such as bos_token. `where` is what errors begin with.
  static ChatTemplate parse(const std::string& text,
                            const OrderedJson& tokens = OrderedJson::object(),
                            const std::string& where = "chat_template.jinja");

  /// The text of a list of messages. Tokens have to be made of it without special ones, as it has
  /// them.
  std::string render(const OrderedJson& messages, const ChatOptions& options = {}) const;

 private:
  struct Parts;
  explicit ChatTemplate(std::shared_ptr<const Parts> parts);

  std::shared_ptr<const Parts> parts_;
};

}  // namespace fw::models

#ifndef FASTWEIGHTS_COMPILED_TEXT
#include <fastweights/models/implementation/chat_template.hpp>
#endif
