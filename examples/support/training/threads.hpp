#pragma once

#include <cstddef>
#include <exception>

#ifdef _OPENMP
#include <omp.h>
#endif

/// As many threads as asked for, by less than 1 as many as OpenMP would take; one without it.
inline int threads_or_all([[maybe_unused]] int asked = 0) {
#ifdef _OPENMP
  return asked < 1 ? omp_get_max_threads() : asked;
#else
  return 1;
#endif
}

/// Calls f(0) … f(count − 1), the next one in whichever thread is free. What one of them throws is
/// thrown here, after all have ended: an exception must not leave OpenMP's threads.
template <class F> void run_jobs(std::size_t count, [[maybe_unused]] int threads, const F& f) {
  std::exception_ptr thrown;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
  for (std::size_t i = 0; i < count; ++i) {
    try {
      f(i);
    } catch (...) {
#pragma omp critical(run_jobs)
      thrown = std::current_exception();
    }
  }
  if (thrown) std::rethrow_exception(thrown);
}
