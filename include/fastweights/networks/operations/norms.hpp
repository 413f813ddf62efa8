#pragma once

#include <fastweights/core/errors.hpp>
#include <fastweights/core/finite.hpp>
#include <fastweights/networks/operations/equal_parts.hpp>
#include <fastweights/networks/operations/weights.hpp>

/// \file
/// Norms of values, each of `groups` equal parts by itself, without weights:
///
///     rms(x)  = x / √(mean x² + ε)          standardise(x) = (x − mean x) / √(var x + ε)
///     l2(x)   = x / √(Σ x² + ε)             unit(x)        = x / max(√(Σ x²), ε)
///
/// and with weights: rms_norm, layer_norm.

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// The norms.
enum class NormKind {
  rms,         ///< x / √(mean x² + ε)
  l2,          ///< x / √(Σ x² + ε)
  unit,        ///< x / max(√(Σ x²), ε)
  standardise  ///< (x − mean x) / √(var x + ε)
};

/// A norm of each of `groups` equal parts, without weights.
template <class S, NormKind kind> struct Norm final : Operation<S> {
  Index groups;  ///< equal parts of x
  S epsilon;

  Norm(Index g, double e) : groups(g), epsilon(S(e)) {
    if (!(epsilon > 0) || !fw::detail::is_finite(epsilon))
      fw::detail::throw_invalid({"a norm: epsilon is ", fw::detail::number_text(e),
                                 ", expected a finite number above 0"});
  }

  void forward(const Forward<S>& run) const override {
    for_each_part(
        groups,
        [&](const auto& x, auto y) {
          if constexpr (kind == NormKind::standardise)
            y = x - x.mean();
          else
            y = x;
          y *= inverse(y);
        },
        run.in(), run.out());
  }

  // With y = c(x) s for the centred c and s its inverse norm: dc = s (dy − y ⟨dy, y⟩ / n), with n
  // the entries for a mean, 1 for a sum.
  void backward(const Backward<S>& run) const override {
    for_each_part(
        groups,
        [&](const auto& x, const auto& y, const auto& dy, auto dx) {
          S along = (dy * y).sum() / count(x.size());
          if constexpr (kind == NormKind::standardise) {
            const S s = inverse(x - x.mean());
            dx += s * (dy - dy.mean() - y * along);
          } else {
            const S s = inverse(x);
            if (kind == NormKind::unit && s == S(1) / epsilon) along = S(0);
            dx += s * (dy - y * along);
          }
        },
        run.in(), run.out(), run.dout(), run.din());
  }

 private:
  static constexpr bool is_mean = kind == NormKind::rms || kind == NormKind::standardise;
  static S count(Index d) { return is_mean ? S(double(d)) : S(1); }
  template <class X> S inverse(const X& x) const {
    using std::sqrt;
    const S squares = x.square().sum() / count(x.size());
    if constexpr (kind == NormKind::unit) return S(1) / std::max(sqrt(squares), epsilon);
    return S(1) / sqrt(squares + epsilon);
  }
};

/// A norm of each of `groups` equal parts, without weights.
template <NormKind kind, class S> Value<S> norm(const Value<S>& x, Index groups, double epsilon) {
  x.rows_of_part(groups);
  return x.builder->add(Norm<S, kind>(groups, epsilon), x.rows(), {x});
}
/// x / √(mean x² + ε).
template <class S> Value<S> rms(const Value<S>& x, Index groups, double epsilon) {
  return norm<NormKind::rms>(x, groups, epsilon);
}
/// x / √(Σ x² + ε).
template <class S> Value<S> l2(const Value<S>& x, Index groups, double epsilon = 1e-6) {
  return norm<NormKind::l2>(x, groups, epsilon);
}
/// x / max(√(Σ x²), ε).
template <class S> Value<S> unit(const Value<S>& x, Index groups, double epsilon = 1e-12) {
  return norm<NormKind::unit>(x, groups, epsilon);
}
/// (x − mean x) / √(var x + ε).
template <class S> Value<S> standardise(const Value<S>& x, Index groups, double epsilon) {
  return norm<NormKind::standardise>(x, groups, epsilon);
}

/// Options of rms_norm and layer_norm.
struct NormOptions {
  double epsilon = 1e-6;
  Index groups = 1;       ///< equal parts of x with a norm each
  bool shared = false;    ///< all groups have the same weights
  bool plus_one = false;  ///< the weights are stored minus one
  bool bias = false;      ///< of a layer norm
};

/// w ⊙ rms(x), with the weights `name`.weight.
template <class S>
Value<S> rms_norm(const Value<S>& x, const std::string& name, const NormOptions& o) {
  const Index n = o.shared ? x.rows_of_part(o.groups) : x.rows();
  Value<S> w = parameter(*x.builder, name + ".weight", n, constant_draw(o.plus_one ? 0 : 1));
  if (o.plus_one) w = 1.0 + w;
  return rms(x, o.groups, o.epsilon) * tile(w, x.rows() / n);
}

/// w ⊙ standardise(x) + b, with the weights `name`.weight and `name`.bias.
template <class S>
Value<S> layer_norm(const Value<S>& x, const std::string& name, const NormOptions& o) {
  const Index n = o.shared ? x.rows_of_part(o.groups) : x.rows();
  const Value<S> w = parameter(*x.builder, name + ".weight", n, constant_draw(1));
  const Value<S> y = standardise(x, o.groups, o.epsilon) * tile(w, x.rows() / n);
  if (!o.bias) return y;
  return y + tile(parameter(*x.builder, name + ".bias", n), x.rows() / n);
}

}  // namespace fw::networks
