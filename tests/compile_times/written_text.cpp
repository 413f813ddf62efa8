// limit: 6, 500 MiB with fastweights::compiled_models
// A published model writes text.
#include <fastweights/models/generate.hpp>
#include <fastweights/models/model.hpp>
#include <iostream>

int main(int count, char** arguments) {
  if (count < 3) return 0;
  const std::filesystem::path folder = arguments[1];
  const auto model = fw::models::load<float>(folder);
  const auto tokenizer = fw::models::Tokenizer::read(folder / "tokenizer.json");
  fw::models::generate(model, tokenizer, arguments[2],
                       {.max_tokens = 100,
                        .temperature = 0.7,
                        .stop = {"\n\n"},
                        .end_tokens = fw::models::end_tokens(folder, model.outputs())},
                       [](std::string_view text) { std::cout << text << std::flush; });
}
