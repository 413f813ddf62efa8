// Renders a chat template, for script/check templates.
//   templates < cases    each line is {"template", "tokens", "messages", "tools", "variables",
//                        "add_generation_prompt"}; prints {"text"} or {"error"}

#include <fastweights/models/chat_template.hpp>
#include <iostream>

namespace {

using fw::models::OrderedJson;

OrderedJson rendered(const OrderedJson& given) {
  try {
    const auto chat = fw::models::ChatTemplate::parse(given["template"], given["tokens"]);
    return {{"text", chat.render(given["messages"],
                                 {.add_generation_prompt = given["add_generation_prompt"],
                                  .tools = given["tools"],
                                  .variables = given["variables"]})}};
  } catch (const std::exception& error) {
    return {{"error", error.what()}};
  }
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line))
    std::cout << rendered(OrderedJson::parse(line)).dump() << "\n";
}
