#pragma once

#include <cstddef>

/// The largest number of bytes on the heap while f runs, without those that were there before.
/// Counts operator new.
namespace heap {

void restart();      ///< the peak begins at what is on the heap now
std::size_t peak();  ///< bytes above that

template <class F> std::size_t peak_of(const F& f) {
  restart();
  f();
  return peak();
}

}  // namespace heap
