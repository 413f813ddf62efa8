#pragma once

#include <cmath>
#include <fastweights/continuous/components.hpp>
#include <fastweights/core/scratch.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// The density proportional to e^{q·K(t)} on [0, 1], with K(t) = Σ_n K_n ψ_n(t): attention over a
/// continuum. It has no parameters.
///
///     p(t) = exp(Σ_n s_n ψ_n(t)) / Z,   r_n = ∫₀¹ p(t) ψ_n(t) dt
///
/// Exact for a rectangular basis, where it is softmax attention over N slots. For Gaussians there
/// is no closed form; the integrals use 8 Gauss–Legendre nodes per interval of width σ_min, the
/// smallest σ. Cost per query: 4 N flops and an exponential for each of the P nodes, P = N slots or
/// 8/σ_min.
/// Martins et al. 2020, arXiv 2006.07214, section 2.
template <class S> class GibbsDensity {
 public:
  using Scalar = S;
  using Vector = Eigen::Matrix<S, Dynamic, 1>;
  using Matrix = Eigen::Matrix<S, Dynamic, Dynamic>;

  /// No components: the scores define the density.
  struct Mixture {
    static constexpr auto names = fw::names();
  };

  /// `basis` must be the basis of the memory.
  explicit GibbsDensity(const RectangularBasis<S>& basis) {
    const auto slots = static_cast<double>(basis.size());
    resize(basis.size(), basis.size());
    for (Index n = 0; n < basis.size(); ++n)
      set_node(basis, n, (static_cast<double>(n) + 0.5) / slots, 1 / slots);
  }
  /// A density for Gaussians, with quadrature nodes.
  explicit GibbsDensity(const GaussianBasis<S>& basis) {
    const auto panels = static_cast<Index>(std::ceil(1 / std::min(1.0, basis.narrowest())));
    resize(basis.size(), 8 * panels);
    for (Index i = 0; i < panels; ++i) {
      const double width = 1.0 / static_cast<double>(panels), lo = width * static_cast<double>(i);
      Index node = 8 * i;
      detail::GaussLegendre::visit(
          lo, lo + width, [&](double t, double weight) { set_node(basis, node++, t, weight); });
    }
  }

  /// N, the functions of the basis.
  Index functions() const { return psi_.rows(); }

  template <class T> GibbsDensity<T> cast() const {
    GibbsDensity<T> to;
    to.psi_ = psi_.template cast<T>();
    to.log_weight_ = log_weight_.template cast<T>();
    to.lo_ = lo_;
    to.hi_ = hi_;
    return to;
  }

  /// Nothing: the scores define the density.
  template <class Basis, class Scores> Mixture mixture_of(const Basis&, const Scores&) const {
    return {};
  }

  /// r ← E_p[ψ].
  template <class Basis, class Scores, class R>
  void expect(const Basis&, const Scores& scores, const Mixture&, R&& r) const {
    with_masses(scores, [&](const auto& p) { r.noalias() = psi_ * p; });
  }

  /// Overwrites dscores, which must not be dr.
  template <class Basis, class Scores, class Dr, class DScores>
  void vjp(const Basis&, const Scores& scores, const Mixture&, const Dr& dr, Mixture&,
           DScores&& dscores, GibbsDensity&) const {
    with_masses(scores, [&](const auto& p) {
      scratch<S, Dynamic>(p.size(), [&](auto& dp) {
        dp.noalias() = psi_.transpose() * dr;
        detail::softmax_vjp_in_place(p, dp);
        dscores.noalias() = psi_ * dp;
      });
    });
  }

  /// Adds the mass of p in each of the equal bins of [0, 1]. The mass of a node is spread over its
  /// interval.
  template <class Basis, class Scores, class Histogram>
  void add_mass(const Basis&, const Scores& scores, const Mixture&, Histogram& histogram) const {
    with_masses(scores, [&](const auto& p) {
      const Index bins = histogram.size();
      const auto scale = static_cast<double>(bins);
      for (Index i = 0; i < p.size(); ++i) {
        const double lo = lo_[i] * scale, hi = hi_[i] * scale;
        for (auto b = static_cast<Index>(lo); b < bins && static_cast<double>(b) < hi; ++b) {
          const double from = std::max(lo, static_cast<double>(b));
          const double to = std::min(hi, static_cast<double>(b + 1));
          histogram[b] += p[i] * S((to - from) / (hi - lo));
        }
      }
    });
  }

  /// Nothing, as Mixture.
  Mixture zero_gradient(const Mixture&) const { return {}; }

 private:
  template <class T> friend class GibbsDensity;
  GibbsDensity() = default;

  void resize(Index functions, Index nodes) {
    psi_.resize(functions, nodes);
    log_weight_.resize(nodes);
    lo_.resize(nodes);
    hi_.resize(nodes);
  }
  template <class Basis> void set_node(const Basis& basis, Index i, double t, double weight) {
    Eigen::VectorXd psi(basis.size());
    basis.evaluate(t, psi);
    psi_.col(i) = psi.template cast<S>();
    log_weight_[i] = S(std::log(weight));
    lo_[i] = i > 0 ? hi_[i - 1] : 0;  // nodes are in ascending order
    hi_[i] = lo_[i] + weight;
  }

  // Calls f with the mass of p at every node.
  template <class Scores, class F> void with_masses(const Scores& scores, const F& f) const {
    scratch<S, Dynamic>(log_weight_.size(), [&](auto& p) {
      p = log_weight_;
      p.noalias() += psi_.transpose() * scores;
      detail::softmax_in_place(p);
      f(p);
    });
  }

  Matrix psi_;              // the basis at the nodes
  Vector log_weight_;       // logarithms of the quadrature weights
  Eigen::ArrayXd lo_, hi_;  // the interval of each node
};

}  // namespace fw
