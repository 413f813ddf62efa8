#pragma once

#include <cstddef>
#include <exception>

#ifdef _OPENMP
#include <omp.h>
#endif

/// The requested number of threads; OpenMP's own number for less than 1; one without OpenMP.
inline int threads_or_all([[maybe_unused]] int requested = 0) {
#ifdef _OPENMP
  return requested < 1 ? omp_get_max_threads() : requested;
#else
  return 1;
#endif
}

/// Calls f(0) … f(count − 1), each in the next free thread. An exception of one of them is rethrown
/// after all have ended, as it must not leave OpenMP's threads.
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
