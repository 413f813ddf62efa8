// Plays a scenario from standard input with the memories of the page, and prints the scores of all
// values for each question: a line for each memory.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "word_memories.hpp"

int main() {
  web::WordMemories memories;
  std::vector<std::string> values;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string action, key, value;
    words >> action >> key;
    if (action == "write") {
      float beta = 0, decay = 0;
      words >> value >> beta >> decay;
      memories.write(key, value, beta, decay);
      if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
      continue;
    }
    memories.ask(key);
    for (int memory = 0; memory < web::WordMemories::count; ++memory) {
      for (const std::string& each : values) std::printf("%.7f ", memories.score(memory, each));
      std::puts("");
    }
  }
}
