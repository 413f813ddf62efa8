// Several threads share const objects. Prints one line per check and fails if a thread computes
// anything else than one thread alone. The sanitizer reports races.

#include "together.hpp"

namespace {

#ifdef FASTWEIGHTS_RACE
// The control: a race that the sanitizer must report, otherwise its silence means nothing.
void race() {
  int number = 0;
  together([&](int i) { number += i; });
  std::printf("the control: %d\n", number);
}
#endif

}  // namespace

int main() {
#ifdef FASTWEIGHTS_RACE
  race();
#endif
  check_rules();
  check_continuous_memory();
  check_layers();
  check_files();
  check_exchange();
  std::printf(failures ? "%d results differ\n" : "all threads compute the same\n", failures);
  return failures ? 1 : 0;
}
