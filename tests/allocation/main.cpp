// No memory allocates, locks or calls the system in a step, and no model in a token. Prints one
// line per check and fails if any check fails.
//
//     fastweights_allocation [steps]   # of each memory, 10,000 by default

#include <Eigen/Core>
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "checks.hpp"

#if defined __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace {

// The controls: everything must be counted, otherwise a zero means nothing.
template <class F> void expect_counted(const char* what, long Usage::*kind, const F& f) {
  const long counted = usage_of(f).*kind;
  std::printf("%-62s %ld (the control: at least 1)\n", what, counted);
  if (counted < 1) ++failures;
}

// Makes p look used, so that the compiler cannot remove the allocation.
void use(void* p) { asm volatile("" : : "r"(p) : "memory"); }

template <class F> void expect_allocation(const char* what, const F& f) {
  expect_counted(what, &Usage::allocations, f);
}

void check_allocations_are_counted() {
  const auto then_free = [](auto allocate) {
    return [allocate] {
      void* p = allocate();
      use(p);
      std::free(p);
    };
  };
  expect_allocation("malloc", then_free([] { return std::malloc(100); }));
  expect_allocation("calloc", then_free([] { return std::calloc(10, 10); }));
  expect_allocation("realloc", then_free([] { return std::realloc(nullptr, 100); }));
  expect_allocation("aligned_alloc", then_free([] { return std::aligned_alloc(64, 128); }));
  expect_allocation("posix_memalign", then_free([] {
                      void* p = nullptr;
                      return posix_memalign(&p, 64, 128) == 0 ? p : nullptr;
                    }));
  expect_allocation("operator new", [] { use(std::make_unique<int>(1).get()); });
  struct alignas(128) Aligned {
    int number = 1;
  };
  expect_allocation("operator new with alignment", [] { use(std::make_unique<Aligned>().get()); });
  expect_allocation("an Eigen matrix", [] { use(Eigen::MatrixXf(10, 10).data()); });
  std::thread([] {
    expect_allocation("operator new in another thread",
                      [] { use(std::make_unique<int>(1).get()); });
  }).join();
}

void check_locks_are_counted() {
  std::mutex mutex;
  std::shared_mutex shared;
  expect_counted("a mutex", &Usage::locks, [&] { std::lock_guard lock(mutex); });
  expect_counted("a shared mutex", &Usage::locks, [&] { std::shared_lock lock(shared); });
}

void check_system_calls_are_counted() {
  if (!can_watch_system_calls()) {
    std::printf("system calls are not watched: that takes Linux 5.11 on x86-64\n");
    return;
  }
  expect_counted("a system call", &Usage::system_calls, [] { syscall(SYS_getpid); });
  expect_counted("a yield", &Usage::system_calls, [] { std::this_thread::yield(); });
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1) pass_count = std::max(1l, std::atol(arguments[1]) / sequence_length);
  check_allocations_are_counted();
  check_locks_are_counted();
  check_system_calls_are_counted();
  check_memories();
  check_typed_memories();
  check_models();
  check_networks();
  check_layers();
  check_chunked_memories();
  std::printf(failures ? "%d of the lines above are wrong\n"
                       : "no step allocates, locks or calls the system\n",
              failures);
  return failures ? 1 : 0;
}
