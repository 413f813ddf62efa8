#pragma once

#include <cstdio>
#include <fastweights/core/errors.hpp>

#if FASTWEIGHTS_EXCEPTIONS || defined __GXX_RTTI
#error "compile this program with -fno-exceptions -fno-rtti"
#endif

inline int failures = 0;

inline void check(bool passed, const char* what) {
  if (passed) return;
  std::printf("wrong: %s\n", what);
  ++failures;
}
