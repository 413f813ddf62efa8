// Replaces the allocation and locking functions of the C library for the whole process. operator
// new calls malloc there, and std::mutex pthread_mutex_lock (the controls in main.cpp check this).

#include "counter.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace {

std::atomic<long> count{0}, locks{0};

// Calls the C library's own function of this name.
template <class... Args> int forward_lock(const char* name, Args... args) {
  ++locks;
  return reinterpret_cast<int (*)(Args...)>(dlsym(RTLD_NEXT, name))(args...);
}

}  // namespace

Usage usage() { return {count.load(), locks.load()}; }

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

void* memalign(std::size_t alignment, std::size_t size) {
  ++count;
  return __libc_memalign(alignment, size);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) {
  ++count;
  return __libc_memalign(alignment, size);
}

int posix_memalign(void** result, std::size_t alignment, std::size_t size) {
  ++count;
  *result = __libc_memalign(alignment, size);
  return *result ? 0 : ENOMEM;
}

int pthread_mutex_lock(pthread_mutex_t* m) noexcept {
  return forward_lock("pthread_mutex_lock", m);
}
int pthread_mutex_trylock(pthread_mutex_t* m) noexcept {
  return forward_lock("pthread_mutex_trylock", m);
}
int pthread_rwlock_rdlock(pthread_rwlock_t* l) noexcept {
  return forward_lock("pthread_rwlock_rdlock", l);
}
int pthread_rwlock_wrlock(pthread_rwlock_t* l) noexcept {
  return forward_lock("pthread_rwlock_wrlock", l);
}
int pthread_cond_wait(pthread_cond_t* c, pthread_mutex_t* m) {
  return forward_lock("pthread_cond_wait", c, m);
}
int sem_wait(sem_t* s) { return forward_lock("sem_wait", s); }

}  // extern "C"
