#pragma once

/// Counts of what a real-time thread must not do.
struct Usage {
  long allocations = 0;   ///< by any function and in any thread
  long locks = 0;         ///< of mutexes, read-write locks, condition variables and semaphores
  long system_calls = 0;  ///< 1 if there was any by this thread

  Usage operator+(const Usage& other) const {
    return {allocations + other.allocations, locks + other.locks,
            system_calls + other.system_calls};
  }
  bool none() const { return allocations == 0 && locks == 0 && system_calls == 0; }
};

/// The allocations and locks of the process so far.
Usage usage();

/// True if this system can watch for system calls: Linux 5.11 or newer on x86-64.
bool can_watch_system_calls();

/// From watch_system_calls() to system_calls() the thread's first system call is noticed. It is
/// executed, and ends the watch.
void watch_system_calls();
long system_calls();

/// The usage of f.
template <class F> Usage usage_of(const F& f) {
  const Usage before = usage();
  watch_system_calls();
  f();
  const long calls = system_calls();
  const Usage after = usage();
  return {after.allocations - before.allocations, after.locks - before.locks, calls};
}
