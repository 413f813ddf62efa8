#pragma once

#include <fastweights/kernels/decode/step.hpp>

/// \file
/// A step with two corrections, the second without a look-up (Products::removal), as of RWKV-7:
///
///     W ← W diag(α) + u_1 b_1ᵀ + u_2 b_2ᵀ     y = W q
///
/// Two steps would pass over W three times. Together they pass twice, and the second pass finds its
/// rows in the first-level cache.

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// Such a step for `rows` rows of W, in place; see PanelStep. The decays are those of `two`.
template <class S, class Column, DecayKind decay_kind>
class RemovalStep : PanelStep<S, Column, decay_kind, true> {
  using Base = PanelStep<S, Column, decay_kind, true>;

 public:
  static EIGEN_ALWAYS_INLINE void run(S* W, Index stride, Index columns, const StepToken<S>& one,
                                      const StepToken<S>& two, Index first, Index rows) {
    W += first;
    Column retrieved = Base::product(W, stride, columns, one.lookup, rows);
    retrieved.scale(one.lookup_scale);
    const Updates u{{Base::update_of(one, first, rows, retrieved), one.key},
                    {Base::update_of(two, first, rows, Column::all(S(0))), two.key}};
    if (two.output == nullptr) {
      Base::template write_and_read<false>(W, stride, columns, two, u, first, rows);
    } else {
      Column y = Base::template write_and_read<true>(W, stride, columns, two, u, first, rows);
      y.scale(two.coefficients.read_scale);
      y.store(two.output + first, rows);
    }
  }

 private:
  struct Updates {
    typename Base::Update one, two;
    EIGEN_ALWAYS_INLINE void add_to(Column& w, Index j) const {
      one.add_to(w, j);
      two.add_to(w, j);
    }
  };
};

/// RemovalStep as step_panel.
template <class S, int R, DecayKind decay_kind>
EIGEN_DONT_INLINE void removal_panel(S* W, Index stride, Index columns, const StepToken<S>& one,
                                     const StepToken<S>& two, Index first,
                                     [[maybe_unused]] Index rows) {
  using Column = Rows<S, R>;
  RemovalStep<S, Column, decay_kind>::run(W, stride, columns, one, two, first,
                                          R == 2 ? rows : Column::size);
}

#define FASTWEIGHTS_REMOVAL_PANEL(keyword, S, R, decay_kind)                                   \
  keyword template void removal_panel<S, R, decay_kind>(S*, Index, Index, const StepToken<S>&, \
                                                        const StepToken<S>&, Index, Index)
/// Explicit instances, or with `extern` their declarations.
#define FASTWEIGHTS_REMOVAL_KERNELS(keyword, S)                     \
  FASTWEIGHTS_REMOVAL_PANEL(keyword, S, 1, DecayKind::none);        \
  FASTWEIGHTS_REMOVAL_PANEL(keyword, S, 2, DecayKind::none);        \
  FASTWEIGHTS_REMOVAL_PANEL(keyword, S, 4, DecayKind::none);        \
  FASTWEIGHTS_REMOVAL_PANEL(keyword, S, 1, DecayKind::per_channel); \
  FASTWEIGHTS_REMOVAL_PANEL(keyword, S, 2, DecayKind::per_channel); \
  FASTWEIGHTS_REMOVAL_PANEL(keyword, S, 4, DecayKind::per_channel)

#ifdef FASTWEIGHTS_COMPILED
FASTWEIGHTS_REMOVAL_KERNELS(extern, float);
FASTWEIGHTS_REMOVAL_KERNELS(extern, double);
#endif

/// True if the two corrections of a step may share a pass over W.
template <class Matrix, class S> EIGEN_ALWAYS_INLINE bool has_removal_step(const Matrix& W) {
  return !is_small<Matrix>() && W.rows() >= lanes<S> &&
         !is_narrow<S>(W.rows(), W.cols(), W.colStride());
}

/// One step with two corrections. W is d_v×d_k with contiguous columns, and is looked up before it
/// decays.
template <DecayKind decay_kind, class Matrix, class S>
void step_removal(Matrix& W, const Correction<S>& one, const Correction<S>& two) {
  // More packets would not fit in the registers with both updates.
  constexpr int tallest = EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS >= 32 ? 4 : 2;
  StepToken<S> first, second;
  first.set(one);
  second.set(two);
  first.lookup_scale = -one.coefficients.retrieved_scale;
  second.decays = one.decays;
  for_step_panels<S, tallest>(W.rows(), [&]<int R>(std::integral_constant<int, R>, Index begin,
                                                   Index count) {
    removal_panel<S, R, decay_kind>(W.data(), W.colStride(), W.cols(), first, second, begin, count);
  });
}

}  // namespace fw::detail
