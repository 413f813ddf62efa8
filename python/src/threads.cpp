#include <omp.h>

#include <algorithm>
#include <atomic>

#include "objects.hpp"

namespace fw::python {

namespace {
// OpenMP ends the process if the system refuses it a thread.
constexpr int most_threads = 1024;

std::atomic<int> threads{std::min(omp_get_max_threads(), most_threads)};
}

UsedThreads::UsedThreads() : before_(omp_get_max_threads()) { omp_set_num_threads(threads); }
UsedThreads::~UsedThreads() { omp_set_num_threads(before_); }

void bind_threads(nb::module_& m) {
  m.def(
      "get_num_threads", [] { return threads.load(); },
      "The number of threads that scans, steps and gradients use for heads and sequences.");
  m.def(
      "set_num_threads",
      [](int count) {
        if (count < 1 || count > most_threads)
          throw nb::value_error(("set_num_threads: count is " + std::to_string(count) +
                                 ", expected 1 to " + std::to_string(most_threads))
                                    .c_str());
        threads = count;
      },
      nb::arg("count"),
      "Sets the number of threads, 1 to 1024; at first OMP_NUM_THREADS, or all processors.\n\n"
      "Results do not depend on it.");
}

}  // namespace fw::python
