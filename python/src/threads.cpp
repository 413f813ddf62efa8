#include <omp.h>

#include <algorithm>
#include <atomic>

#include "objects.hpp"

namespace fw::python {

namespace {
std::atomic<int> threads{omp_get_max_threads()};
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
        if (count < 1)
          throw nb::value_error(
              ("set_num_threads: count is " + std::to_string(count) + ", expected at least 1")
                  .c_str());
        threads = count;
      },
      nb::arg("count"),
      "Sets the number of threads; at first OMP_NUM_THREADS, or all processors.\n\n"
      "Results do not depend on it.");
}

}  // namespace fw::python
