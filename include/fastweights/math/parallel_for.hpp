#pragma once

#include <Eigen/Core>
#include <exception>
#include <fastweights/core/errors.hpp>
#include <utility>

#ifdef _OPENMP
#include <omp.h>
#if defined __unix__ || defined __APPLE__
#include <pthread.h>
#include <unistd.h>
#endif
#endif

namespace fw::inline FASTWEIGHTS_ABI {

#ifdef _OPENMP
namespace detail {

// Runs calls of a parallel loop, which no exception may leave, and keeps one exception.
class FirstException {
 public:
#if FASTWEIGHTS_EXCEPTIONS
  template <class F> void run(F&& f) {
    try {
      f();
    } catch (...) {
#pragma omp critical(fastweights_parallel_for)
      if (!kept_) kept_ = std::current_exception();
    }
  }
  void rethrow() {
    if (kept_) std::rethrow_exception(std::move(kept_));
  }

 private:
  std::exception_ptr kept_;
#else
  template <class F> void run(F&& f) { f(); }
  void rethrow() {}
#endif
};

#if defined __unix__ || defined __APPLE__
// Set in a child of fork, if the parent has run a parallel loop before.
inline bool is_forked = false;
inline bool watch_forks() {
  return ::pthread_atfork(nullptr, nullptr, [] { is_forked = true; }) == 0;
}
#endif

// True if this process is a child of one that had threads (fork). The child has none of them, and
// GCC's OpenMP would wait for them for ever. Called before every parallel loop, so without a system
// call.
inline bool has_lost_threads() {
#if defined __unix__ || defined __APPLE__
  static const pid_t owner = ::getpid();
  static const bool watches = watch_forks();
  return watches ? is_forked : ::getpid() != owner;
#else
  return false;
#endif
}

}  // namespace detail
#endif

/// Calls f(0) … f(count − 1), in parallel if the program is compiled with OpenMP and `parallel` is
/// true. For example for heads or streams, each with its own state and outputs.
///
///     fw::parallel_for(states.size(), true, [&](fw::Index h) {
///       fw::scan(memory, states[h], {K[h], V[h], beta[h]}, {Q[h]}, {Y[h]});
///     });
///
/// Memories and layers compute the same bits for any number of threads. Inside a parallel region of
/// the caller all calls run in the current thread, unless OpenMP nesting is enabled. Rethrows one
/// exception of f; in parallel, after all calls have ended. Each thread keeps the buffers of the
/// kernels. In a child of fork whose parent has run a parallel loop here, all calls run in the
/// current thread.
template <class F> void parallel_for(Eigen::Index count, [[maybe_unused]] bool parallel, F&& f) {
#ifdef _OPENMP
  if (parallel && count > 1 && !detail::has_lost_threads()) {
    detail::FirstException exception;
#pragma omp parallel for schedule(static)
    for (Eigen::Index h = 0; h < count; ++h) exception.run([&] { f(h); });
    exception.rethrow();
    return;
  }
#endif
  for (Eigen::Index h = 0; h < count; ++h) f(h);
}

template <class F>
[[deprecated("its name is parallel_for")]] void for_each_head(Eigen::Index count, bool parallel,
                                                              F&& f) {
  parallel_for(count, parallel, std::forward<F>(f));
}

namespace detail {

/// Number of calls of parallel_for that can run at the same time.
inline Eigen::Index heads_at_once([[maybe_unused]] bool parallel) {
#ifdef _OPENMP
  if (parallel && !omp_in_parallel() && !has_lost_threads()) return omp_get_max_threads();
#endif
  return 1;
}

}  // namespace detail

}  // namespace fw
