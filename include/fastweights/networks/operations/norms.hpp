#pragma once

#include <fastweights/core/errors.hpp>
#include <fastweights/core/finite.hpp>
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

/// Options of rms_norm and layer_norm.
struct NormOptions {
  double epsilon = 1e-6;
  Index groups = 1;       ///< equal parts of x with a norm each
  bool shared = false;    ///< all groups have the same weights
  bool plus_one = false;  ///< the weights are stored minus one
  bool bias = false;      ///< of a layer norm
};

/// A norm of each of `groups` equal parts, times w, plus b, if the node has such weights.
template <class S, NormKind kind> struct Norm final : Operation<S> {
  Index groups;  ///< equal parts of x
  using Real = typename Eigen::NumTraits<S>::Real;
  Real epsilon;
  bool shared;  ///< all groups have the same weights
  S offset;     ///< added to w

  explicit Norm(const NormOptions& o)
      : groups(o.groups), epsilon(Real(o.epsilon)), shared(o.shared), offset(o.plus_one ? 1 : 0) {
    if (!(epsilon > 0) || !fw::detail::is_finite(epsilon))
      fw::detail::throw_invalid({"a norm: epsilon is ", fw::detail::number_text(o.epsilon),
                                 ", expected a finite number above 0"});
  }

  struct OwnTrace final : OperationTrace {
    Eigen::Array<S, Dynamic, 1> normalised, gradient;  // backward's, of a part
  };

  bool overwrites() const override { return true; }
  std::unique_ptr<OperationTrace> make_trace() const override {
    return std::make_unique<OwnTrace>();
  }
  void forward(const Forward<S>& run) const override {
    const auto x = run.in();
    auto y = run.out();
    for_parts(x, [&](Index t, Index first, Index weight, Index d) {
      auto part = y.col(t).segment(first, d).array();
      normalise(x.col(t).segment(first, d).array(), part);
      if (has_weight(run)) part *= factors(run, weight, d);
      if (has_bias(run)) part += run.weight(1).reshaped().segment(weight, d).array();
    });
  }

  // With n(x) = c(x) s for the centred c and s its inverse norm, and g the gradient of n:
  // dx = s (g − mean g − n ⟨g, n⟩ / count), where count is the entries for a mean, 1 for a sum.
  void backward(const Backward<S>& run) const override {
    const auto x = run.in(), dy = run.dout();
    auto dx = run.din();
    OwnTrace& trace = buffers(run, x.rows() / groups);
    auto &normalised = trace.normalised, &g = trace.gradient;
    for_parts(x, [&](Index t, Index first, Index weight, Index d) {
      const S s = normalise(x.col(t).segment(first, d).array(), normalised);
      g = dy.col(t).segment(first, d).array();
      if (has_bias(run)) run.dweight(1).reshaped().segment(weight, d).array() += g;
      if (has_weight(run)) {
        run.dweight().reshaped().segment(weight, d).array() += g * normalised;
        g *= factors(run, weight, d);
      }
      S along = (g * normalised).sum() / count(d);
      if (kind == NormKind::unit && s == S(1) / S(epsilon)) along = S(0);
      const S mean = kind == NormKind::standardise ? g.mean() : S(0);
      g = s * (g - mean - normalised * along);
      auto part = dx.col(t).segment(first, d).array();
      if (run.is_first())
        part = g;
      else
        part += g;
    });
  }

 private:
  static constexpr bool is_mean = kind == NormKind::rms || kind == NormKind::standardise;
  static S count(Index d) { return is_mean ? S(double(d)) : S(1); }
  static bool has_weight(const Forward<S>& run) { return !run.node.weights.empty(); }
  static bool has_bias(const Forward<S>& run) { return run.node.weights.size() > 1; }
  auto factors(const Forward<S>& run, Index first, Index d) const {
    return run.weight().reshaped().segment(first, d).array() + offset;
  }

  static OwnTrace& buffers(const Forward<S>& run, Index rows) {
    auto& trace = run.template own_trace<OwnTrace>();
    trace.normalised.resize(rows);
    trace.gradient.resize(rows);
    return trace;
  }

  // Calls f(column, first row, first weight, rows) for every part.
  template <class X, class F> void for_parts(const X& x, const F& f) const {
    const Index d = x.rows() / groups;
    for (Index t = 0; t < x.cols(); ++t)
      for (Index h = 0; h < groups; ++h) f(t, h * d, shared ? 0 : h * d, d);
  }

  // y = c(x) s. Returns s.
  template <class X, class Y> S normalise(const X& x, Y& y) const {
    if constexpr (kind == NormKind::standardise)
      y = x - x.mean();
    else
      y = x;
    const S s = inverse(y);
    y *= s;
    return s;
  }
  template <class X> S inverse(const X& x) const {
    using std::sqrt;
    const S squares = x.square().sum() / count(x.size());
    if constexpr (kind != NormKind::unit) return S(1) / sqrt(squares + S(epsilon));
    const S length = sqrt(squares);
    return S(1) / (Eigen::numext::real(length) < epsilon ? S(epsilon) : length);
  }
};

/// A norm of each of `groups` equal parts, without weights.
template <NormKind kind, class S> Value<S> norm(const Value<S>& x, Index groups, double epsilon) {
  x.rows_of_part(groups);
  return x.builder->add(Norm<S, kind>({.epsilon = epsilon, .groups = groups}), x.rows(), {x});
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

/// A norm with the weights `name`.weight and, of a layer norm with o.bias, `name`.bias.
template <NormKind kind, class S>
Value<S> weighted_norm(const Value<S>& x, const std::string& name, const NormOptions& o) {
  const Index n = o.shared ? x.rows_of_part(o.groups) : x.rows();
  x.rows_of_part(o.groups);
  Builder<S>& builder = *x.builder;
  std::vector<std::size_t> weights{
      builder.weight(name + ".weight", {n}, constant_initialiser(o.plus_one ? 0 : 1))};
  if (kind == NormKind::standardise && o.bias)
    weights.push_back(builder.weight(name + ".bias", {n}, constant_initialiser(0)));
  return builder.add(Norm<S, kind>(o), x.rows(), {x}, std::move(weights));
}
/// w ⊙ rms(x), with the weights `name`.weight.
template <class S>
Value<S> rms_norm(const Value<S>& x, const std::string& name, const NormOptions& o) {
  return weighted_norm<NormKind::rms>(x, name, o);
}
/// w ⊙ standardise(x) + b, with the weights `name`.weight and `name`.bias.
template <class S>
Value<S> layer_norm(const Value<S>& x, const std::string& name, const NormOptions& o) {
  return weighted_norm<NormKind::standardise>(x, name, o);
}

}  // namespace fw::networks
