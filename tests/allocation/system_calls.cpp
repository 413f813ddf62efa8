// Watches for system calls of a thread by Linux's syscall user dispatch: with the selector set to
// block, the kernel sends SIGSYS instead of executing a system call.

#include "counter.hpp"

#if defined __linux__ && defined __x86_64__ && __has_include(<linux/prctl.h>)
#include <linux/prctl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <ucontext.h>
#endif

#ifdef PR_SET_SYSCALL_USER_DISPATCH

namespace {

volatile char selector = SYSCALL_DISPATCH_FILTER_ALLOW;
volatile long seen = 0;

// Notes the system call, ends the watch and repeats the instruction, which then calls the kernel.
void on_system_call(int, siginfo_t*, void* context) {
  seen = 1;
  selector = SYSCALL_DISPATCH_FILTER_ALLOW;
  constexpr int bytes_of_the_instruction = 2;
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP] -= bytes_of_the_instruction;
}

bool start() {
  struct sigaction action = {};
  action.sa_sigaction = on_system_call;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSYS, &action, nullptr);
  return prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, &selector) == 0;
}

// The kernel watches the thread that asked for it, the main thread here.
const bool started = start();

}  // namespace

bool can_watch_system_calls() { return started; }

void watch_system_calls() {
  seen = 0;
  if (started) selector = SYSCALL_DISPATCH_FILTER_BLOCK;
}

long system_calls() {
  selector = SYSCALL_DISPATCH_FILTER_ALLOW;
  return seen;
}

#else

bool can_watch_system_calls() { return false; }
void watch_system_calls() {}
long system_calls() { return 0; }

#endif
