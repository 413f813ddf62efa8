#pragma once

#include <Eigen/Core>
#include <exception>

namespace fw {

/// Calls f(0) … f(count − 1), at the same time where the program is compiled with OpenMP and
/// `parallel` says so: for heads or streams, each with a state and outputs of its own.
///
///     fw::for_each_head(states.size(), true, [&](fw::Index h) {
///       fw::scan(memory, states[h], {K[h], V[h], beta[h]}, {Q[h]}, {Y[h]});
///     });
///
/// Every call does what it does alone: what memories compute are the same bits for any number of
/// threads (not so Eigen's own products of large matrices, which look at it). Inside a parallel
/// region of the caller's it stays in the thread it is in, unless OpenMP is told to nest. What f
/// throws is thrown here, one of several; in parallel, after all calls have ended. A thread keeps
/// the room that kernels worked in.
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
