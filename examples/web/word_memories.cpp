// The memories of words, for the page: functions with C names. Words come through `text`.
#include "word_memories.hpp"

namespace {

char text[512];
web::WordMemories memories;

std::string_view word(int first, int size) {
  return {text + first, static_cast<std::size_t>(size)};
}

}  // namespace

extern "C" {
char* text_buffer() { return text; }
int text_size() { return sizeof(text); }
void forget() { memories = web::WordMemories(); }
void write_pair(int key_size, int value_size, float beta, float decay) {
  memories.write(word(0, key_size), word(key_size, value_size), beta, decay);
}
void ask(int key_size) { memories.ask(word(0, key_size)); }
float score(int memory, int value_size) { return memories.score(memory, word(0, value_size)); }
const float* numbers(int memory) { return memories.numbers(memory); }
int rows(int memory) { return memories.rows(memory); }
int columns(int memory) { return memories.columns(memory); }
}
