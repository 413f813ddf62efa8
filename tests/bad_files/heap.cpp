// Replaces operator new and delete by versions that count bytes.

#include "heap.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> live = 0, most = 0, at_start = 0;

// The size is kept in front of the block.
constexpr std::size_t front = alignof(std::max_align_t);

void* allocate(std::size_t size) noexcept {
  void* const block = std::malloc(size + front);
  if (!block) return nullptr;
  *static_cast<std::size_t*>(block) = size;
  const std::size_t now = live += size;
  most = std::max(most.load(), now);
  return static_cast<char*>(block) + front;
}

void release(void* address) noexcept {
  if (!address) return;
  void* const block = static_cast<char*>(address) - front;
  live -= *static_cast<std::size_t*>(block);
  std::free(block);
}

}  // namespace

namespace heap {

void restart() { most = at_start = live.load(); }
std::size_t peak() { return most - at_start; }

}  // namespace heap

void* operator new(std::size_t size) {
  if (void* const address = allocate(size)) return address;
  throw std::bad_alloc();
}
void* operator new[](std::size_t size) { return operator new(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
void operator delete(void* address) noexcept { release(address); }
void operator delete[](void* address) noexcept { release(address); }
void operator delete(void* address, std::size_t) noexcept { release(address); }
void operator delete[](void* address, std::size_t) noexcept { release(address); }
void operator delete(void* address, const std::nothrow_t&) noexcept { release(address); }
void operator delete[](void* address, const std::nothrow_t&) noexcept { release(address); }
