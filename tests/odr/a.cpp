// One program includes the umbrella header in two translation units, which must agree.
#include <cstdio>

#include "checks.hpp"

int main() {
  const float here = recall(), there = recall_in_b();
  std::printf("a: %.9g  b: %.9g\n", here, there);
  return here == there && here != 0 ? 0 : 1;
}
