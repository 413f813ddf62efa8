#pragma once

#ifdef _OPENMP
#include <omp.h>
#endif

/// As many threads as asked for, by less than 1 as many as OpenMP would take; one without it.
inline int threads_or_all([[maybe_unused]] int asked) {
#ifdef _OPENMP
  return asked < 1 ? omp_get_max_threads() : asked;
#else
  return 1;
#endif
}
