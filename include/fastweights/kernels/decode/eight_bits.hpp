#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <fastweights/kernels/decode/deferred.hpp>

/// \file
/// A matrix W in 8 bits that keeps the 4 bits below them:
///
///     W_ij = scale_i (w_ij + r_ij / 16),   w from −127 to 127, r from −8 to 7
///
/// Products take w alone, and a flush adds the pending writes to all 12 bits: what the 8 bits round
/// off is not lost. A flush chooses the scale of a row anew, so that its largest entry fits. A row
/// with an entry that is not finite becomes NaN.

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// Columns 2j and 2j + 1 of r are the low and the high half of the bytes in column j of
/// `remainders`, which has W's stride.
template <class S> struct EightBitMatrix {
  std::int8_t *numbers, *remainders;
  S* scales;
  Index stride, rows, columns;
};

/// Applies the pending writes to some rows of W. It computes the new entries twice, for their
/// largest and to store them, so that it needs no buffer. See DeferredRows for `first` and
/// `skipped`.
template <class Column, class S> class EightBitFlush {
 public:
  static EIGEN_DONT_INLINE void run(const EightBitMatrix<S>& W, const PendingWrites<S>& w,
                                    Index first, Index skipped) {
    EightBitFlush f{W, w, first, skipped};
    f.before_.scale(S(1) / 16);
    f.for_all_columns([&](const auto& columns, Index) { f.find_largest(columns); });
    f.choose_scales();
    f.for_all_columns([&](const auto& columns, Index from) { f.store(columns, from); });
    store_after(f.scales_, W.scales + first, skipped);
  }

 private:
  static constexpr Index size = Column::size;
  using Numbers = std::array<S, std::size_t(size)>;
  using Integers = std::array<int, std::size_t(size)>;
  using Bytes = std::array<std::int8_t, std::size_t(size)>;

  EightBitFlush(const EightBitMatrix<S>& W, const PendingWrites<S>& w, Index first, Index skipped)
      : W_(W), w_(w), first_(first), skipped_(skipped), before_(Column::load(W.scales + first)) {}

  // Calls f(the new columns, from which one on) for two columns at a time.
  template <class F> EIGEN_ALWAYS_INLINE void for_all_columns(const F& f) const {
    Index j = 0;
    for (; j + 2 <= W_.columns; j += 2) f(columns<2>(j), j);
    if (j < W_.columns) f(columns<1>(j), j);
  }

  template <std::size_t N> EIGEN_ALWAYS_INLINE std::array<Column, N> columns(Index from) const {
    std::array<Column, N> c;
    for (std::size_t k = 0; k < N; ++k) {
      const Index j = from + Index(k);
      c[k] = before(j);
      c[k].scale(w_.decays == nullptr ? w_.decay : w_.decays[j]);
    }
    for (Index i = 0; i < w_.count; ++i) {
      const Column u = Column::load(w_.updates(i) + first_);
      for (std::size_t k = 0; k < N; ++k) c[k].add(u, w_.keys(i)[from + Index(k)]);
    }
    return c;
  }
  // Column j of W before the flush.
  EIGEN_ALWAYS_INLINE Column before(Index j) const {
    const std::int8_t* const w = W_.numbers + first_ + j * W_.stride;
    const std::int8_t* const r = remainders(j);
    const int left = j % 2 == 0 ? 4 : 0;  // moves the half to the upper one, which has the sign
    Numbers all;
    for (Index i = 0; i < size; ++i)
      all[std::size_t(i)] = S(16 * w[i] + (static_cast<std::int8_t>(r[i] << left) >> 4));
    Column c = Column::load(all.data());
    c.scale(before_);
    return c;
  }

  template <std::size_t N>
  EIGEN_ALWAYS_INLINE void find_largest(const std::array<Column, N>& columns) {
    for (const Column& c : columns) {
      Numbers x;
      c.store(x.data());
      for (std::size_t i = 0; i < x.size(); ++i) {
        const S entry = std::abs(x[i]);
        largest_[i] = entry > largest_[i] ? entry : largest_[i];
      }
      zero_unless_nan_.add(c, S(0));
    }
  }
  // The largest of the 12-bit numbers is 2039 = 16·127 + 7. The inverse of a scale must be finite.
  void choose_scales() {
    Numbers scales, inverses;
    for (std::size_t i = 0; i < scales.size(); ++i) {
      scales[i] = std::max(largest_[i] * (S(16) / 2039), 16 * std::numeric_limits<S>::min());
      inverses[i] = 16 / scales[i];
    }
    scales_ = Column::load(scales.data());
    scales_.add(zero_unless_nan_);
    inverses_ = Column::load(inverses.data());
  }

  template <std::size_t N>
  EIGEN_ALWAYS_INLINE void store(const std::array<Column, N>& columns, Index from) const {
    Bytes halves{}, numbers;
    for (std::size_t k = 0; k < N; ++k) {
      const Index j = from + Index(k);
      const Integers all = rounded(columns[k]);
      for (std::size_t i = 0; i < all.size(); ++i) {
        numbers[i] = static_cast<std::int8_t>((all[i] + 8) >> 4);
        halves[i] = static_cast<std::int8_t>(halves[i] | (all[i] & 15) << 4 * k);
      }
      put(numbers, W_.numbers + first_ + j * W_.stride);
    }
    put(halves, remainders(from));
  }
  EIGEN_ALWAYS_INLINE void put(const Bytes& x, std::int8_t* to) const {
    if (size == 1 || skipped_ == 0)
      std::memcpy(to, x.data(), x.size());
    else
      std::copy(x.begin() + skipped_, x.end(), to + skipped_);
  }
  // Entries over scale / 16, to nearest: the truncation of a positive number. NaN becomes a number.
  EIGEN_ALWAYS_INLINE Integers rounded(Column c) const {
    Numbers x;
    c.scale(inverses_);
    clamp(c, S(-2040), S(2039));  // infinity
    c.store(x.data());
    Integers all;
    for (std::size_t i = 0; i < x.size(); ++i)
      all[i] = static_cast<int>((x[i] == x[i] ? x[i] : S(0)) + S(2048.5)) - 2048;
    return all;
  }
  std::int8_t* remainders(Index j) const { return W_.remainders + first_ + j / 2 * W_.stride; }

  const EightBitMatrix<S>& W_;
  const PendingWrites<S>& w_;
  const Index first_, skipped_;
  Column before_;  // scales
  Column scales_ = Column::all(S(0)), inverses_ = scales_, zero_unless_nan_ = scales_;
  Numbers largest_{};
};

template <class S> void deferred_flush(const EightBitMatrix<S>& W, const PendingWrites<S>& w) {
  for_each_panel<S>(W.rows,
                    [&]<class Column>(std::type_identity<Column>, Index first, Index skipped) {
                      EightBitFlush<Column, S>::run(W, w, first, skipped);
                    });
}

/// Explicit instances, or with `extern` their declarations.
#define FASTWEIGHTS_EIGHT_BIT_KERNELS(keyword, S)      \
  FASTWEIGHTS_DEFERRED_STEPS(keyword, std::int8_t, S); \
  keyword template void deferred_flush(const EightBitMatrix<S>&, const PendingWrites<S>&)

#ifdef FASTWEIGHTS_COMPILED
FASTWEIGHTS_EIGHT_BIT_KERNELS(extern, float);
#endif

}  // namespace fw::detail
