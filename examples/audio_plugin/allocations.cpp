#include "audio_plugin/allocations.hpp"

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
#include "report/malloc_hooks.hpp"

namespace {
thread_local long count = 0;
}

void count_allocation() { ++count; }
long allocations_of_thread() { return count; }
#else
long allocations_of_thread() { return -1; }
#endif
