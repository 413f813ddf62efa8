#pragma once

#include <Eigen/Core>
#include <fastweights/continuous/moments.hpp>
#include <fastweights/core/errors.hpp>
#include <fastweights/core/finite.hpp>
#include <fastweights/core/views.hpp>
#include <limits>
#include <vector>

/// \file
/// Bases of a continuous signal x̃(t) = Σ_n b_n ψ_n(t) on [0, 1]. A basis evaluates its functions in
/// double for the ridge operators. It also computes the moments of its functions, alone and times a
/// normal density, from which densities compute exact integrals.

namespace fw::inline FASTWEIGHTS_ABI {

/// The domain of a density: the whole line, or [0, 1] with the density truncated and normalised.
enum class Domain {
  line,  ///< the whole line
  unit   ///< [0, 1], with the density truncated and normalised there
};

/// Normalised Gaussians.
///
///     ψ_n(t) = N(t; μ_n, σ_n²)
///
/// `widths` are S values of σ. There are ⌈N/S⌉ centres, evenly spaced from 0 to 1, and each centre
/// has one function per width. (When S does not divide N, the last centre has fewer.)
/// Martins et al. 2022, arXiv 2109.00301, section 3.1.
template <class S> class GaussianBasis {
 public:
  using Scalar = S;
  using Array = Eigen::Array<S, Dynamic, 1>;

  /// N = `functions` Gaussians with these widths σ. Throws std::invalid_argument for N < 1, for no
  /// width, or for a width that is not positive.
  GaussianBasis(Index functions, const std::vector<double>& widths);
  /// Any centres and widths.
  GaussianBasis(Eigen::ArrayXd means, Eigen::ArrayXd widths);

  /// N, the number of functions.
  Index size() const { return mean_.size(); }
  /// The centres μ_n.
  const Array& means() const { return mean_; }
  /// The variances σ_n².
  const Array& variances() const { return variance_; }
  /// The smallest σ.
  double narrowest() const { return width_.minCoeff(); }
  template <class T> GaussianBasis<T> cast() const { return {exact_mean_, width_}; }

  /// psi ← ψ(t); psi must have N entries.
  template <class V> void evaluate(double t, V&& psi) const {
    psi.array() = ((t - exact_mean_) / width_).square();
    psi.array() = (psi.array() * -0.5).exp() / (width_ * 2.5066282746310005024);
  }

  /// Moments about `centre` of ψ_n over [lo, hi].
  detail::Moments<S> moments(Index n, const S& centre, const S& lo, const S& hi) const {
    return detail::normal_moments<S>(mean_[n], variance_[n], centre, lo, hi);
  }

  /// Moments about μ of N(t; μ, v) ψ_n(t), which is a multiple of a Gaussian.
  detail::Moments<S> normal_moments(Index n, const S& mu, const S& v, Domain domain) const {
    using std::exp;
    using std::sqrt;
    const S total = v + variance_[n], offset = mean_[n] - mu;
    const S height = exp(S(-0.5) * offset * offset / total) / sqrt(S(6.283185307179586477) * total);
    const S mean = v * offset / total, variance = v * variance_[n] / total;
    if (domain == Domain::line) return {height, height * mean, height * (variance + mean * mean)};
    return height * detail::normal_moments<S>(mu + mean, variance, mu, S(0), S(1));
  }

 private:
  Eigen::ArrayXd exact_mean_, width_;
  Array mean_, variance_;
};

/// N slots of equal width.
///
///     ψ_n(t) = 1 for (n−1)/N ≤ t < n/N, else 0
///
/// With a Gibbs density this is softmax attention over N slots.
template <class S> class RectangularBasis {
 public:
  using Scalar = S;
  using Array = Eigen::Array<S, Dynamic, 1>;

  /// N = `functions` slots. Throws std::invalid_argument for N < 1.
  explicit RectangularBasis(Index functions);

  /// N, the number of functions.
  Index size() const { return mean_.size(); }
  /// The middles of the slots.
  const Array& means() const { return mean_; }
  /// The variance of a uniform density over each slot.
  const Array& variances() const { return variance_; }
  /// The width of a slot.
  double narrowest() const { return 1.0 / static_cast<double>(size()); }
  template <class T> RectangularBasis<T> cast() const { return RectangularBasis<T>(size()); }

  /// psi ← ψ(t)
  template <class V> void evaluate(double t, V&& psi) const {
    psi.setZero();
    if (!(t >= 0 && t <= 1)) return;
    const auto slots = static_cast<double>(size());
    auto n = static_cast<Index>(t * slots);
    if (static_cast<double>(n + 1) / slots <= t) ++n;  // t = (n + 1)/N, but t N was rounded down
    psi[std::min(size() - 1, n)] = 1;
  }

  /// Moments about `centre` of ψ_n over [lo, hi].
  detail::Moments<S> moments(Index n, const S& centre, const S& lo, const S& hi) const {
    return detail::uniform_moments<S>(centre, detail::larger(lo, edge(n)),
                                      detail::smaller(hi, edge(n + 1)));
  }
  /// Moments about μ of N(t; μ, v) ψ_n(t): those of the normal density over the slot.
  detail::Moments<S> normal_moments(Index n, const S& mu, const S& v, Domain) const {
    return detail::normal_moments<S>(mu, v, mu, edge(n), edge(n + 1));
  }

 private:
  S edge(Index n) const { return S(static_cast<double>(n) / static_cast<double>(size())); }

  Array mean_, variance_;
};

template <class S>
GaussianBasis<S>::GaussianBasis(Eigen::ArrayXd means, Eigen::ArrayXd widths)
    : exact_mean_(std::move(means)), width_(std::move(widths)) {
  if (exact_mean_.size() < 1 || exact_mean_.size() != width_.size())
    detail::throw_invalid({"GaussianBasis: ", std::to_string(exact_mean_.size()), " means and ",
                           std::to_string(width_.size()),
                           " widths, expected as many of both, at least 1"});
  if (!(width_ > 0).all() || !all_finite(width_) || !all_finite(exact_mean_))
    detail::throw_invalid(
        {"GaussianBasis: a mean or width is not finite, or a width not positive"});
  mean_ = exact_mean_.template cast<S>();
  variance_ = width_.square().template cast<S>();
}

template <class S>
GaussianBasis<S>::GaussianBasis(Index functions, const std::vector<double>& widths) {
  const auto per_centre = static_cast<Index>(widths.size());
  if (functions < 1 || per_centre < 1)
    detail::throw_invalid({"GaussianBasis: ", std::to_string(functions), " functions of ",
                           std::to_string(per_centre), " widths, expected at least 1 of each"});
  const Index centres = (functions + per_centre - 1) / per_centre;
  Eigen::ArrayXd mean(functions), width(functions);
  for (Index n = 0; n < functions; ++n) {
    const auto centre = static_cast<double>(n / per_centre);
    mean[n] = centres > 1 ? centre / static_cast<double>(centres - 1) : 0.0;
    width[n] = widths[static_cast<std::size_t>(n % per_centre)];
  }
  *this = GaussianBasis(std::move(mean), std::move(width));
}

template <class S> RectangularBasis<S>::RectangularBasis(Index functions) {
  if (functions < 1)
    detail::throw_invalid(
        {"RectangularBasis: ", std::to_string(functions), " functions, expected at least 1"});
  const auto n = static_cast<double>(functions);
  mean_.resize(functions);
  for (Index i = 0; i < functions; ++i) mean_[i] = S((static_cast<double>(i) + 0.5) / n);
  variance_.setConstant(functions, S(1 / (12 * n * n)));
}

}  // namespace fw
