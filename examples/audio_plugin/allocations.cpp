#include "audio_plugin/allocations.hpp"

#include <cstddef>
#include <cstdlib>

#if defined __SANITIZE_THREAD__ || defined __SANITIZE_ADDRESS__
#define COUNTS 0
#elif defined __has_feature
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define COUNTS 0
#endif
#endif
#ifndef COUNTS
#ifdef __GLIBC__
#define COUNTS 1
#else
#define COUNTS 0
#endif
#endif

#if COUNTS
namespace {
thread_local long count = 0;
}

long allocations_of_thread() { return count; }

extern "C" {
// The GNU C library's implementations of the functions below.
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t size) {
  ++count;
  return __libc_malloc(size);
}
void* calloc(std::size_t number, std::size_t size) {
  ++count;
  return __libc_calloc(number, size);
}
void* realloc(void* old, std::size_t size) {
  ++count;
  return __libc_realloc(old, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  ++count;
  return __libc_memalign(alignment, size);
}
}
#else
long allocations_of_thread() { return -1; }
#endif
