#pragma once

#include <fastweights/kernels/simd/packet.hpp>

namespace fw::detail {
inline namespace FASTWEIGHTS_KERNELS {

/// Vectors that a later batch of tokens needs. Every pass over a panel of the matrix asks the
/// memory for its part of them while it computes: they come from further away than the hardware
/// looks ahead.
template <class S> class PrefetchList {
 public:
  void clear() { count_ = 0; }
  /// Vectors of the same size; null for none.
  template <class... Pointers> void add(Pointers... vectors) { (add_one(vectors), ...); }

  /// For entries first … first + count − 1.
  EIGEN_ALWAYS_INLINE void prefetch([[maybe_unused]] Index first,
                                    [[maybe_unused]] Index count) const {
    // Not by Eigen's prefetch: GCC takes its calls for calls without an effect, and drops them.
#if defined __GNUC__
    for (int i = 0; i < count_; ++i)
      for (Index j = first; j < first + count; j += line) __builtin_prefetch(vectors_[i] + j);
#endif
  }

 private:
  static constexpr int most = 10;
  static constexpr Index line = 64 / sizeof(S);

  void add_one(const S* vector) {
    if (vector != nullptr && count_ < most) vectors_[count_++] = vector;
  }

  const S* vectors_[most];
  int count_ = 0;
};

/// Whether it pays: where tokens are this small the hardware looks far enough ahead.
template <class S> constexpr bool worth_prefetching(Index entries) {
  return entries * static_cast<Index>(sizeof(S)) > 128;
}

/// Ahead, of the vectors with an entry for every row of a matrix, and for every column.
template <class S> struct Prefetches { PrefetchList<S> rows, columns; };

}  // namespace FASTWEIGHTS_KERNELS
}  // namespace fw::detail
