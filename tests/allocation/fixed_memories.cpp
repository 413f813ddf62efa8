#include "memories.hpp"

void check_fixed_memories() {
  check_memories<3>(3);
  check_memories<64>(64);
  check_recurrent_memories<3>(3);
  check(fw::Programmer1991<float, 3, 3, fw::Tanh>({.key_size = 3}), "tanh");
}
