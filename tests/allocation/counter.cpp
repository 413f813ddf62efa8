// Replaces the allocation and locking functions of the C library for the whole process. operator
// new calls malloc there, and std::mutex pthread_mutex_lock (the controls in main.cpp check this).

#include "counter.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>

#include <atomic>

#include "report/malloc_hooks.hpp"

namespace {

std::atomic<long> count{0}, locks{0};

// Calls the C library's own function of this name.
template <class... Args> int forward_lock(const char* name, Args... args) {
  ++locks;
  return reinterpret_cast<int (*)(Args...)>(dlsym(RTLD_NEXT, name))(args...);
}

}  // namespace

void count_allocation() { ++count; }

Usage usage() { return {count.load(), locks.load()}; }

extern "C" {

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
