/// Reads and renders a chat template: see chat_template.hpp.
#pragma once

#include <fastweights/models/chat_template.hpp>
#include <fastweights/models/chat_template/parser.hpp>
#include <fastweights/models/chat_template/renderer.hpp>
#include <fastweights/models/implementation/inline.hpp>
#include <fastweights/models/strict_json.hpp>

namespace fw::inline FASTWEIGHTS_ABI::models {
namespace chat {

/// A value of JSON. Throws for one that has too many levels or a number beyond 64 bits.
inline Value value_of(const OrderedJson& json, Costs& costs, int level = 0) {
  if (level > Bounds::values)
    costs.fail("a variable has more than " + std::to_string(Bounds::values) + " levels");
  if (json.is_null()) return Value::none();
  if (json.is_boolean()) return Value::boolean(json.get<bool>());
  if (json.is_number_float()) return Value::real(json.get<double>());
  if (json.is_string()) return Value::text(valid_utf8(json.get<std::string>()), costs);
  if (json.is_number_unsigned() && json.get<std::uint64_t>() >> 63 != 0)
    costs.fail("a variable has the number " + json.dump() + ", which is beyond 64 bits");
  if (json.is_number()) return Value::integer(json.get<std::int64_t>());
  if (json.is_array()) {
    Values items;
    for (const OrderedJson& each : json) items.push_back(value_of(each, costs, level + 1));
    return Value::list(std::move(items), costs);
  }
  if (!json.is_object()) costs.fail("a variable is no JSON");
  Entries entries;
  for (const auto& [name, each] : json.items())
    entries.emplace_back(Value::text(valid_utf8(name), costs), value_of(each, costs, level + 1));
  return Value::dict(std::move(entries), costs);
}

/// A template that was read.
struct Template {
  std::string where;
  Nodes nodes;

  static Template parse(const std::string& text, const std::string& where) {
    Costs costs(where);
    return {where, Parser(Lexer(valid_utf8(text), costs).tokens(), costs).read()};
  }
};

/// A message with one name for its reasoning and without null.
inline OrderedJson normal_message(const OrderedJson& message, const Costs& costs) {
  if (!message.is_object()) costs.fail("a message is no object");
  OrderedJson reasoning, normal = OrderedJson::object();
  for (const char* name : {"reasoning", "thinking", "reasoning_content"})
    if (message.contains(name) && !message[name].is_null()) reasoning = message[name];
  if (!reasoning.is_null()) normal["thinking"] = reasoning;
  for (const auto& [name, value] : message.items())
    if (!value.is_null()) normal[name] = value;
  if (!reasoning.is_null()) normal["reasoning_content"] = reasoning;
  return normal;
}

}  // namespace chat

struct ChatTemplate::Parts {
  chat::Template usual;
  std::optional<chat::Template> with_tools;
  OrderedJson tokens;

  /// bos_token and others, whose entries are texts or objects with a content.
  static OrderedJson tokens_of(const OrderedJson& config) {
    OrderedJson tokens = OrderedJson::object();
    for (const auto& [name, value] : config.items()) {
      if (!name.ends_with("_token")) continue;
      if (value.is_string()) tokens[name] = value;
      if (value.is_object() && value.contains("content")) tokens[name] = value["content"];
    }
    return tokens;
  }
  /// The template of a name in a list.
  static std::optional<std::string> named(const OrderedJson& list, const char* name) {
    for (const OrderedJson& each : list)
      if (each.is_object() && each.contains("name") && each["name"] == name &&
          each.contains("template") && each["template"].is_string())
        return each["template"].get<std::string>();
    return {};
  }
  void read_config(const OrderedJson& config, const std::string& where) {
    const OrderedJson templates =
        config.contains("chat_template") ? config["chat_template"] : OrderedJson();
    const std::string place = where + ": chat_template";
    if (templates.is_string()) {
      usual = chat::Template::parse(templates.get<std::string>(), place);
      return;
    }
    const auto first = named(templates, "default"), tool_use = named(templates, "tool_use");
    if (!templates.is_array() || !first)
      fw::detail::throw_invalid({place, ": expected a text, or a list with the name default"});
    usual = chat::Template::parse(*first, place + ": default");
    if (tool_use) with_tools = chat::Template::parse(*tool_use, place + ": tool_use");
  }
};

FASTWEIGHTS_TEXT_INLINE ChatTemplate::ChatTemplate(std::shared_ptr<const Parts> parts)
    : parts_(std::move(parts)) {}

FASTWEIGHTS_TEXT_INLINE ChatTemplate ChatTemplate::parse(const std::string& text,
                                                         const OrderedJson& tokens,
                                                         const std::string& where) {
  auto parts = std::make_shared<Parts>();
  parts->usual = chat::Template::parse(text, where);
  parts->tokens = tokens;
  return ChatTemplate(std::move(parts));
}

FASTWEIGHTS_TEXT_INLINE ChatTemplate ChatTemplate::read(const std::filesystem::path& folder) {
  auto parts = std::make_shared<Parts>();
  const auto file = folder / "chat_template.jinja", config_file = folder / "tokenizer_config.json";
  const bool has_file = std::filesystem::exists(file);
  OrderedJson config = OrderedJson::object();
  if (!has_file || std::filesystem::exists(config_file)) {
    const std::string text = text_of_file(config_file, 16 << 20);
    parse_strictly(text, config_file.string());
    config = OrderedJson::parse(text);
    if (!config.is_object())
      fw::detail::throw_invalid({config_file.string(), ": expected an object"});
  }
  parts->tokens = Parts::tokens_of(config);
  if (has_file)
    parts->usual =
        chat::Template::parse(text_of_file(file, chat::Bounds::template_bytes), file.string());
  else
    parts->read_config(config, config_file.string());
  return ChatTemplate(std::move(parts));
}

FASTWEIGHTS_TEXT_INLINE std::string ChatTemplate::render(const OrderedJson& messages,
                                                         const ChatOptions& options) const {
  const bool has_tools = !options.tools.is_null() && parts_->with_tools.has_value();
  const chat::Template& used = has_tools ? *parts_->with_tools : parts_->usual;
  chat::Costs costs(used.where);
  if (!messages.is_array() || messages.empty()) costs.fail("expected a list of messages");
  if (!options.variables.is_object()) costs.fail("the variables are no object");
  OrderedJson normal = OrderedJson::array();
  for (const OrderedJson& each : messages) normal.push_back(chat::normal_message(each, costs));
  std::map<std::string, chat::Value, std::less<>> variables;
  for (const OrderedJson* more : {&parts_->tokens, &options.variables})
    for (const auto& [name, value] : more->items()) variables[name] = chat::value_of(value, costs);
  variables["messages"] = chat::value_of(normal, costs);
  variables["tools"] = chat::value_of(options.tools, costs);
  variables.try_emplace("documents", chat::Value::none());
  variables["add_generation_prompt"] = chat::Value::boolean(options.add_generation_prompt);
  return chat::Renderer(std::move(variables), options.now.value_or(std::time(nullptr)), costs)
      .render(used.nodes);
}

}  // namespace fw::models
