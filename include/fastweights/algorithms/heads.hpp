#pragma once

#include <Eigen/Core>
#include <exception>
#include <fastweights/core/abi.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Calls f(0) … f(count − 1), in parallel if the program is compiled with OpenMP and `parallel` is
/// true. For heads or streams, each with its own state and outputs.
///
///     fw::for_each_head(states.size(), true, [&](fw::Index h) {
///       fw::scan(memory, states[h], {K[h], V[h], beta[h]}, {Q[h]}, {Y[h]});
///     });
///
/// Memories and layers compute the same bits for any number of threads. Inside a parallel region of
/// the caller all calls run in the current thread, unless OpenMP nesting is enabled. Rethrows one
/// exception of f; in parallel, after all calls have ended. Each thread keeps the buffers of the
/// kernels.
template <class F> void for_each_head(Eigen::Index count, [[maybe_unused]] bool parallel, F&& f) {
#ifdef _OPENMP
  if (parallel && count > 1) {
    std::exception_ptr thrown;
#pragma omp parallel for schedule(static)
    for (Eigen::Index h = 0; h < count; ++h) {
      try {
        f(h);
      } catch (...) {
#pragma omp critical(fastweights_for_each_head)
        if (!thrown) thrown = std::current_exception();
      }
    }
    if (thrown) std::rethrow_exception(thrown);
    return;
  }
#endif
  for (Eigen::Index h = 0; h < count; ++h) f(h);
}

}  // namespace fw
