// The library's patterns and NFC of characters, for script/check tokenizer-classes.
//   classes match TEXT < expressions    of each line where matches begin and end in the file TEXT,
//   or
//                                       "refused" and why
//   classes nfc < texts                 the normal form of each line; all in hexadecimal digits

#include <cstdio>
#include <exception>
#include <fastweights/models/tokenizer/split_pattern.hpp>
#include <fstream>
#include <iostream>
#include <iterator>

namespace {

void print_matches(const std::string& expression, const std::string& text) {
  try {
    const fw::models::SplitPattern pattern("(?:" + expression + ")+", expression);
    for (const auto& part : pattern.parts(text))
      if (part.is_match) std::printf("%zu %zu ", part.begin, part.end);
    std::puts("");
  } catch (const std::exception& error) {
    std::printf("refused %s\n", error.what());
  }
}

void print_normal_form(const std::string& digits) {
  std::string text;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    text += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  for (const char c : fw::models::nfc(text))
    std::printf("%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
  std::puts("");
}

}  // namespace

int main(int argc, char** argv) {
  std::string text;
  if (argc > 2) {
    std::ifstream file(argv[2], std::ios::binary);
    text.assign(std::istreambuf_iterator<char>(file), {});
  }
  for (std::string line; std::getline(std::cin, line);)
    if (text.empty())
      print_normal_form(line);
    else
      print_matches(line, text);
}
