#pragma once

#include <array>
#include <fastweights/kernels/decode/step_token.hpp>
#include <fastweights/kernels/scan/matrix_pass.hpp>
#include <fastweights/kernels/simd/packet.hpp>
#include <type_traits>

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// One step, in place, of a W of `rows` rows (1, 2 or 4) whose columns follow each other in memory.
/// A packet holds several columns, where PanelStep would leave most of its lanes empty. It passes
/// over W twice: for W a, and for the update and y = W q. So `query` never includes decays.
template <class S, int rows, DecayKind decay_kind, bool HasLookups> class NarrowStep {
 public:
  static EIGEN_ALWAYS_INLINE void run(S* W, Index columns, const StepToken<S>& t) {
    const Index size = rows * columns;
    PerRow retrieved{};
    if constexpr (HasLookups) retrieved = pass(size, {}, Product{W, t.lookup});
    const PerRow u = update_of(t, retrieved);
    if (t.output == nullptr) {
      pass(size, u, Update<false>(W, t));
    } else {
      const PerRow y = pass(size, u, Update<true>(W, t));
      for (std::size_t r = 0; r < rows; ++r) t.output[r] = t.coefficients.read_scale * y[r];
    }
  }
  /// y = W x, without a step.
  static EIGEN_ALWAYS_INLINE void product(const S* W, Index columns, const S* x, S* y) {
    const PerRow sums = pass(rows * columns, {}, Product{W, x});
    for (std::size_t r = 0; r < rows; ++r) y[r] = sums[r];
  }

 private:
  using PerRow = std::array<S, rows>;
  template <Index N> using Part = Rows<S, 1, N>;  // N entries of W
  // True if a packet has exactly N entries, and whole columns.
  template <Index N> static constexpr bool has_packet = N > 1 && N >= rows&& size_within<S, N> == N;

  // One number per column, for N entries from entry i on.
  template <Index N> static EIGEN_ALWAYS_INLINE Part<N> factors(const S* each, Index i) {
    using P = typename Part<N>::P;
    const S* const from = each + i / rows;
    if constexpr (N <= rows)
      return Part<N>::all(*from);
    else if constexpr (rows == 1)
      return Part<N>::load(from);
    else if constexpr (rows == 2)
      return {Eigen::internal::ploaddup<P>(from)};
    else
      return {Eigen::internal::ploadquad<P>(from)};
  }

  // One number per row, for N entries.
  template <Index N> static EIGEN_ALWAYS_INLINE Part<N> per_row(const PerRow& x) {
    Part<N> all = Part<N>::all(x[rows - 1]);
    if constexpr (rows > 1) {
      std::array<S, N> row;
      for (Index i = 0; i < N; ++i) row[std::size_t(i)] = S(i % rows);
      for (int r = 0; r < rows - 1; ++r)
        all.packet = Eigen::internal::pselect(
            Eigen::internal::pcmp_eq(Part<N>::load(row.data()).packet, Part<N>::all(S(r)).packet),
            Part<N>::all(x[std::size_t(r)]).packet, all.packet);
    }
    return all;
  }

  // sums[r] += the entries of row r
  template <Index N> static EIGEN_ALWAYS_INLINE void add_rows(const Part<N>& x, PerRow& sums) {
    if constexpr (rows == 1) {
      sums[0] += x.sum();
    } else {
      std::array<S, N> each;
      x.store(each.data());
      constexpr Index half = has_packet<N / 2> ? N / 2 : 0;
      if constexpr (half > 0) {
        Part<half> folded = Part<half>::load(each.data());
        folded.add(Part<half>::load(each.data() + half));
        return add_rows<half>(folded, sums);
      }
      for (Index i = 0; i < N; ++i) sums[std::size_t(i % rows)] += each[std::size_t(i)];
    }
  }

  struct Product {
    const S *W, *x;
    template <Index N>
    EIGEN_ALWAYS_INLINE void operator()(Index i, const Part<N>&, Part<N>& sum) const {
      sum.add(Part<N>::load(W + i), factors<N>(x, i));
    }
  };

  // W ← decay W + u kᵀ. With Reads the sum is the new W q. It copies what it needs of the token: a
  // compiler would load a member again after every store to W.
  template <bool Reads> struct Update {
    S *W, *rounding_errors;
    const S *key, *query, *decays;
    S decay;
    Update(S* w, const StepToken<S>& t)
        : W(w),
          rounding_errors(t.rounding_errors),
          key(t.key),
          query(t.query),
          decays(t.decays),
          decay(t.coefficients.decay) {}
    template <Index N>
    EIGEN_ALWAYS_INLINE void operator()(Index i, const Part<N>& u, Part<N>& sum) const {
      Part<N> w = Part<N>::load(W + i);
      if constexpr (decay_kind == DecayKind::scalar) w.scale(decay);
      if constexpr (decay_kind == DecayKind::per_channel) w.scale(factors<N>(decays, i));
      if constexpr (decay_kind == DecayKind::compensated) {
        Part<N> error = Part<N>::load(rounding_errors + i);
        error.add(u, factors<N>(key, i));
        carry(w, error);
        error.store(rounding_errors + i);
      } else {
        w.add(u, factors<N>(key, i));
      }
      w.store(W + i);
      if constexpr (Reads) sum.add(w, factors<N>(query, i));
    }
  };

  // Calls visit for all entries of W and returns the sums per row.
  template <class Visit>
  static EIGEN_ALWAYS_INLINE PerRow pass(Index size, const PerRow& u, const Visit& visit) {
    PerRow sums{};
    pass_from<lanes<S>>(0, size, u, visit, sums);
    return sums;
  }

  // Four sums hide the latency of a multiply-add.
  template <Index N, class Visit>
  static EIGEN_ALWAYS_INLINE void pass_from(Index i, Index size, const PerRow& each_u,
                                            const Visit& visit, PerRow& sums) {
    if constexpr (N == 1) {
      for (; i < size; i += rows)
        for (int r = 0; r < rows; ++r) {
          Part<1> sum{S(0)};
          visit(i + r, Part<1>{each_u[std::size_t(r)]}, sum);
          sums[std::size_t(r)] += sum.packet;
        }
    } else {
      if (i + N <= size) {
        const Part<N> u = per_row<N>(each_u);
        Part<N> sum = Part<N>::all(S(0)), second = sum, third = sum, fourth = sum;
        if constexpr (N == lanes<S>)
          for (; i + 4 * N <= size; i += 4 * N) {
            visit(i, u, sum);
            visit(i + N, u, second);
            visit(i + 2 * N, u, third);
            visit(i + 3 * N, u, fourth);
          }
        for (; i + N <= size; i += N) visit(i, u, sum);
        if constexpr (N == lanes<S>) third.add(fourth), second.add(third), sum.add(second);
        add_rows<N>(sum, sums);
      }
      pass_from<(has_packet<N / 2> ? N / 2 : 1)>(i, size, each_u, visit, sums);
    }
  }

  static EIGEN_ALWAYS_INLINE PerRow update_of(const StepToken<S>& t, const PerRow& retrieved) {
    PerRow u;
    for (std::size_t r = 0; r < rows; ++r) {
      u[r] = t.coefficients.value_scale * t.value[r];
      if constexpr (HasLookups) u[r] += t.lookup_scale * retrieved[r];
      if (HasLookups && t.error != nullptr) t.error[r] = u[r];
      u[r] *= t.betas != nullptr ? t.betas[r] : t.coefficients.beta;
    }
    return u;
  }
};

/// NarrowStep, not inline: programs that link fastweights::compiled do not compile it again.
template <class S, int rows, DecayKind decay_kind, bool HasLookups>
EIGEN_DONT_INLINE void step_narrow(S* W, Index columns, const StepToken<S>& t) {
  NarrowStep<S, rows, decay_kind, HasLookups>::run(W, columns, t);
}

/// True if a step of a W of this size is a NarrowStep. Not with 3 rows, where columns begin
/// anywhere in a packet. Four rows take half a packet or a quarter in a PanelStep, which is faster
/// for few columns, as it need not add up the columns of a packet.
template <class S> constexpr bool is_narrow(Index rows, Index columns, Index stride) {
  const bool fits = rows == 1 || rows == 2 || (rows == 4 && columns >= 2 * lanes<S>);
  return fits && rows < lanes<S> && stride == rows;
}

}  // namespace fw::detail
