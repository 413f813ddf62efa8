#pragma once

#include <fastweights/networks/builder.hpp>

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// y = min(max(x, low), high), entry by entry. The gradient passes where low ≤ x ≤ high.
template <class S> struct Clamp final : Operation<S> {
  using Real = typename Eigen::NumTraits<S>::Real;
  Real low, high;  ///< the bounds

  Clamp(double from, double to) : low(Real(from)), high(Real(to)) {}
  void forward(const Forward<S>& run) const override {
    if constexpr (Eigen::NumTraits<S>::IsComplex)
      run.out() = run.in().unaryExpr([this](const S& x) {
        return x.real() < low ? S(low) : x.real() > high ? S(high) : x;
      });
    else
      run.out() = run.in().cwiseMax(low).cwiseMin(high);
  }
  void backward(const Backward<S>& run) const override {
    const auto x = run.in(), dy = run.dout();
    auto dx = run.din();
    for (Index t = 0; t < x.cols(); ++t)
      for (Index i = 0; i < x.rows(); ++i)
        if (const Real each = Eigen::numext::real(x(i, t)); each >= low && each <= high)
          dx(i, t) += dy(i, t);
  }
};
/// min(max(x, low), high), entry by entry.
template <class S> Value<S> clamp(const Value<S>& x, double low, double high) {
  if (!(low <= high))
    fw::detail::throw_invalid({x.builder->path(),
                               ": the lower limit of a clamp is above its "
                               "upper limit"});
  return x.builder->add(Clamp<S>(low, high), x.rows(), {x});
}

}  // namespace fw::networks
