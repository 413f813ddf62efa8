#pragma once

#include <fastweights/kernels/rule.hpp>
#include <fastweights/math/decay.hpp>

/// \file
/// The gradients of a rule's corrections. A rule with `correction` has besides
///
///     void correction_vjp(const StateOf<M>& s, const WriteToken&, Index j,
///                         const CorrectionGradient<S>& g, StateOf<M>& ds, WriteGradToken& dt)
///                         const;
///
/// It adds the gradients of correction j to those of the token, and of the state's slow weights.
/// It is called several times, each time with some of the gradients: the others are null, and
/// `add_gradient` and `add_strength_gradient` do nothing with null. The gradient of the token's
/// `decay` is not its concern. A rule with `coefficients` may say instead
///
///     static constexpr bool plain_coefficients = true;
///
/// if these are the token's β and decay, or constants, and the scales of reads and look-ups are 1.

namespace fw::inline FASTWEIGHTS_ABI::detail {

/// Gradients of the vectors of a correction; null for those that are not meant.
template <class S> struct CorrectionGradient {
  const S *key = nullptr, *value = nullptr;  // of b, and of v
  const S* update = nullptr;                 // of u = β ∘ e
  const S* error = nullptr;                  // e itself, divided by `error_scale`
  S error_scale = S(1);
  Index rows = 0;                               // of `value`, `update` and `error`
  const S *lookup = nullptr, *query = nullptr;  // of a and q
};

template <class S> using GradientVector = Eigen::Map<const Eigen::Matrix<S, Dynamic, 1>>;

/// to += gradient, unless it is null.
template <class To, class S> void add_gradient(To&& to, const S* gradient) {
  if (gradient != nullptr) to += GradientVector<S>(gradient, to.size());
}
/// to += factor ∘ gradient, unless it is null.
template <class To, class Factor, class S>
void add_gradient(To&& to, const Factor& factor, const S* gradient) {
  if (gradient != nullptr) to += GradientVector<S>(gradient, to.size()).cwiseProduct(factor);
}
/// The gradient of β, a number or one per row.
template <class S, class To> void add_strength_gradient(To& dbeta, const CorrectionGradient<S>& g) {
  if (g.update != nullptr)
    add_scale_vjp(g.error_scale * GradientVector<S>(g.error, g.rows),
                  GradientVector<S>(g.update, g.rows), dbeta);
}

/// True if M has `correction_vjp`.
template <class M>
inline constexpr bool has_correction_vjp = requires(const M& m, const StateOf<M>& s,
                                                    const WriteToken<M>& t,
                                                    const CorrectionGradient<typename M::Scalar>& g,
                                                    StateOf<M>& ds, WriteGradToken<M>& dt) {
  m.correction_vjp(s, t, Index(0), g, ds, dt);
};
/// True if M says `plain_coefficients`.
template <class M> inline constexpr bool says_plain_coefficients = requires {
  requires M::plain_coefficients;
};

/// Adds the gradients of correction j to those of the token.
template <class M>
void add_correction_gradients(const M& m, const StateOf<M>& s, const WriteToken<M>& t,
                              [[maybe_unused]] Index j,
                              const CorrectionGradient<typename M::Scalar>& g, StateOf<M>& ds,
                              WriteGradToken<M>& dt) {
  if constexpr (has_corrections<M>) {
    m.correction_vjp(s, t, j, g, ds, dt);
  } else {
    add_gradient(dt.key, g.key);
    add_gradient(dt.key, g.lookup);
    add_gradient(dt.value, g.value);
    if constexpr (requires { dt.beta; }) add_strength_gradient(dt.beta, g);
  }
}

}  // namespace fw::detail

namespace fw::inline FASTWEIGHTS_ABI {

// For rules of your own (docs/adding_a_rule.md).
using detail::add_gradient;
using detail::add_strength_gradient;
using detail::CorrectionGradient;

}  // namespace fw
