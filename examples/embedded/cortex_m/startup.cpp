// Code that runs before main: vectors, the floating-point unit, memory, constructors.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

// From the linker script. Their addresses count.
extern std::uint32_t data_load[], data_begin[], data_end[], bss_begin[], bss_end[], stack_limit[],
    stack_top[];

int call_main() asm("main");  // C++ lets no program call main
extern "C" {
void __libc_init_array();
void initialise_monitor_handles();  // of newlib: printf by semihosting
void _init() {}                     // what newlib calls before constructors and after destructors
void _fini() {}
void* __dso_handle = nullptr;

[[noreturn]] void reset();
[[noreturn]] void fault() {
  std::printf("error: a fault of the processor\n");
  std::_Exit(1);
}
}

namespace {

// A fault has no vector of its own here: they all escalate to the hard fault.
using Handler = void (*)();
struct Vectors {
  std::uint32_t* stack;
  Handler reset, nmi, hard_fault;
};
[[gnu::section(".vectors"), gnu::used]] const Vectors vectors{stack_top, reset, fault, fault};

// Everything below this function's frame.
[[gnu::noinline]] void paint_stack() {
  auto* const here = static_cast<std::uint32_t*>(__builtin_frame_address(0));
  for (volatile std::uint32_t* word = stack_limit; word < here - 16; ++word) *word = 0xA5A5A5A5;
}

}  // namespace

void reset() {
  // Full access to coprocessors 10 and 11, before the compiler uses a floating-point register.
  *reinterpret_cast<volatile std::uint32_t*>(0xE000ED88) |= 0xFU << 20U;
  asm volatile("dsb\n\tisb" ::: "memory");
  const std::uint32_t* from = data_load;
  for (std::uint32_t* to = data_begin; to < data_end;) *to++ = *from++;
  for (volatile std::uint32_t* to = bss_begin; to < bss_end;) *to++ = 0;
  paint_stack();
  initialise_monitor_handles();
  __libc_init_array();
  std::exit(call_main());
}
