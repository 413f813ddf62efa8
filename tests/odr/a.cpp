// The umbrella header stands in two translation units of one program, and means the same in both.
#include <cstdio>

#include "checks.hpp"

int main() {
  const float here = recalled(), there = recalled_in_b();
  std::printf("a: %.9g  b: %.9g\n", here, there);
  return here == there && here != 0 ? 0 : 1;
}
