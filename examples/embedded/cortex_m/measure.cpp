#include "measure.hpp"

#include <reent.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

// From the linker script. Their addresses count.
extern std::uint32_t flash_end[], data_begin[], data_end[], bss_end[], end[], stack_limit[],
    stack_top[];

namespace {

unsigned long allocation_count = 0;
std::uint32_t* heap_end = end;

unsigned long address(const void* of) { return reinterpret_cast<std::uintptr_t>(of); }

}  // namespace

// The linker replaces newlib's allocator by these (--wrap). All of malloc, calloc, operator new and
// printf's buffers end there.
extern "C" {
void* __real__malloc_r(_reent*, std::size_t);
void* __real__realloc_r(_reent*, void*, std::size_t);

void* __wrap__malloc_r(_reent* context, std::size_t size) {
  ++allocation_count;
  return __real__malloc_r(context, size);
}
void* __wrap__realloc_r(_reent* context, void* old, std::size_t size) {
  ++allocation_count;
  return __real__realloc_r(context, old, size);
}

// Instead of newlib's, whose heap may grow into the stack.
void* _sbrk(std::ptrdiff_t bytes) {
  void* const start = heap_end;
  auto* const grown = reinterpret_cast<std::uint32_t*>(address(heap_end) + bytes);
  if (grown > stack_limit) {
    errno = ENOMEM;
    return reinterpret_cast<void*>(-1);
  }
  heap_end = grown;
  return start;
}
}

namespace measure {

unsigned long allocations() { return allocation_count; }

// The start-up code painted the stack. What has been used is below the first word of another
// colour.
Memory memory() {
  const std::uint32_t* used = stack_limit;
  while (used < stack_top && *used == 0xA5A5A5A5) ++used;
  const unsigned long data = address(data_end) - address(data_begin);
  return {.flash = address(flash_end) + data,  // which begins at 0 and ends with a copy of the data
          .statics = address(bss_end) - address(data_begin),
          .heap = address(heap_end) - address(end),
          .stack = address(stack_top) - address(used),
          .stack_size = address(stack_top) - address(stack_limit)};
}

namespace {

volatile std::uint32_t& timer(unsigned which) {
  return reinterpret_cast<volatile std::uint32_t*>(0xE000E010)[which];  // CSR, RVR, CVR
}

}  // namespace

unsigned long ticks() {
  if (timer(0) == 0) {
    timer(1) = 0xFFFFFF;
    timer(2) = 0;
    timer(0) = 5;  // of the processor's clock, without interrupts
  }
  return timer(2);
}

unsigned long instructions_since(unsigned long start) {
  return ((start - ticks()) & 0xFFFFFF) * 40;
}

}  // namespace measure
