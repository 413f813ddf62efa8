// limit: 6, 500 MiB with fastweights::compiled_models
// A published model answers a message.
#include <fastweights/models/chat_template.hpp>
#include <fastweights/models/generate.hpp>
#include <fastweights/models/model.hpp>
#include <iostream>

int main(int count, char** arguments) {
  if (count < 3) return 0;
  const std::filesystem::path folder = arguments[1];
  const auto model = fw::models::load<float>(folder);
  const auto tokenizer = fw::models::Tokenizer::read(folder / "tokenizer.json");
  const auto chat = fw::models::ChatTemplate::read(folder);
  const std::string prompt = chat.render({{{"role", "user"}, {"content", arguments[2]}}},
                                         {.add_generation_prompt = true});
  fw::models::generate(model, tokenizer, prompt,
                       {.max_tokens = 100,
                        .temperature = 0.7,
                        .stop = {"\n\n"},
                        .end_tokens = fw::models::end_tokens(folder, model.outputs()),
                        .adds_special = false},
                       [](std::string_view text) { std::cout << text << std::flush; });
}
