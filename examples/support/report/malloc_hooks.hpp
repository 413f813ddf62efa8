#pragma once

#include <cerrno>
#include <cstddef>

/// \file
/// Replaces malloc and its relatives in a program with the GNU C library; operator new and Eigen
/// call them. For one source of the program, and not under sanitizers, which replace malloc
/// themselves.

/// Called at every allocation, by any thread. The program defines it.
void count_allocation();

extern "C" {

// The GNU C library's implementations of the functions below.
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t size) {
  count_allocation();
  return __libc_malloc(size);
}

void* calloc(std::size_t number, std::size_t size) {
  count_allocation();
  return __libc_calloc(number, size);
}

void* realloc(void* old, std::size_t size) {
  count_allocation();
  return __libc_realloc(old, size);
}

void* memalign(std::size_t alignment, std::size_t size) {
  count_allocation();
  return __libc_memalign(alignment, size);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) {
  count_allocation();
  return __libc_memalign(alignment, size);
}

int posix_memalign(void** result, std::size_t alignment, std::size_t size) {
  count_allocation();
  *result = __libc_memalign(alignment, size);
  return *result ? 0 : ENOMEM;
}
}
