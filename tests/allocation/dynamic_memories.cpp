#include "memories.hpp"

void check_dynamic_memories() {
  for (const Index d : {3, 64, 256}) check_memories<Dynamic>(d);
  for (const Index d : {3, 64}) check_recurrent_memories<Dynamic>(d);
}
