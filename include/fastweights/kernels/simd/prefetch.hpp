#pragma once

#include <fastweights/kernels/simd/packet.hpp>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// Vectors that a later batch of tokens needs. Every pass over a panel of the matrix prefetches a
/// part of them. The hardware prefetcher does not look that far ahead.
template <class S> class PrefetchList {
 public:
  void clear() { count_ = 0; }
  /// Adds vectors of equal size; ignores null.
  template <class... Pointers> void add(Pointers... vectors) { (add_one(vectors), ...); }

  /// Prefetches entries first … first + count − 1 of all vectors.
  EIGEN_ALWAYS_INLINE void prefetch([[maybe_unused]] Index first,
                                    [[maybe_unused]] Index count) const {
    // Not Eigen's prefetch: GCC removes calls of it as calls without effect.
#if defined __GNUC__
    for (int i = 0; i < count_; ++i)
      for (Index j = first; j < first + count; j += line) __builtin_prefetch(vectors_[i] + j);
#endif
  }

 private:
  static constexpr int capacity = 10;
  static constexpr Index line = 64 / sizeof(S);

  void add_one(const S* vector) {
    if (vector != nullptr && count_ < capacity) vectors_[count_++] = vector;
  }

  const S* vectors_[capacity];
  int count_ = 0;
};

/// True if prefetching helps. For smaller vectors the hardware prefetcher is sufficient.
template <class S> constexpr bool worth_prefetching(Index entries) {
  return entries * static_cast<Index>(sizeof(S)) > 128;
}

/// Prefetches of vectors with one entry per row, or per column, of the matrix.
template <class S> struct Prefetches { PrefetchList<S> rows, columns; };

}  // namespace fw::detail
