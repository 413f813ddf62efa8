// No memory allocates in a step, and no model in a token. Prints one line per check and fails if
// any check fails.

#include <Eigen/Core>
#include <cstdlib>
#include <memory>
#include <thread>

#include "checks.hpp"

namespace {

// The control: all kinds of allocations must be counted, otherwise a zero means nothing.
template <class F> void expect_counted(const char* what, const F& f) {
  const long counted = allocations_of(f);
  std::printf("%-62s %ld allocations (the control: at least 1)\n", what, counted);
  if (counted < 1) ++failures;
}

// Makes p look used, so that the compiler cannot remove the allocation.
void use(void* p) { asm volatile("" : : "r"(p) : "memory"); }

void check_the_counter() {
  const auto then_free = [](auto allocate) {
    return [allocate] {
      void* p = allocate();
      use(p);
      std::free(p);
    };
  };
  expect_counted("malloc", then_free([] { return std::malloc(100); }));
  expect_counted("calloc", then_free([] { return std::calloc(10, 10); }));
  expect_counted("realloc", then_free([] { return std::realloc(nullptr, 100); }));
  expect_counted("aligned_alloc", then_free([] { return std::aligned_alloc(64, 128); }));
  expect_counted("posix_memalign", then_free([] {
                   void* p = nullptr;
                   return posix_memalign(&p, 64, 128) == 0 ? p : nullptr;
                 }));
  expect_counted("operator new", [] { use(std::make_unique<int>(1).get()); });
  struct alignas(128) Aligned {
    int number = 1;
  };
  expect_counted("operator new with alignment", [] { use(std::make_unique<Aligned>().get()); });
  expect_counted("an Eigen matrix", [] { use(Eigen::MatrixXf(10, 10).data()); });
  std::thread([] {
    expect_counted("operator new in another thread", [] { use(std::make_unique<int>(1).get()); });
  }).join();
}

}  // namespace

int main() {
  check_the_counter();
  check_fixed_memories();
  check_dynamic_memories();
  check_feature_mapped();
  check_models();
  check_layers();
  check_chunked_memories();
  std::printf(failures ? "%d of the lines above are wrong\n" : "no step allocates\n", failures);
  return failures ? 1 : 0;
}
