#pragma once

#include <Eigen/QR>
#include <fastweights/core/scratch.hpp>
#include <fastweights/core/signatures.hpp>
#include <fastweights/feature_maps/columns.hpp>
#include <fastweights/math/products.hpp>
#include <fastweights/math/random.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Positive orthogonal random features. Linear attention with them estimates softmax attention
/// without bias: E[φ(x)·φ(y)] = exp(x·y) over the draws of Ω.
///
///     φ(x) = exp(−‖x‖²/2) / √(2m) · [exp(Ωᵀx); exp(−Ωᵀx)]
///
/// Shapes: Ω d×m, d → 2m. Cost a token: 2dm flops and 2m exponentials; a redraw O(d² max(d, m)). To
/// estimate exp(x·y/√d), the caller scales x and y by d^−1/4 first. Redraw every batch in training
/// and keep Ω for evaluation.
///
/// Overflow: a feature is at most exp(‖ω‖²/2)/√(2m), reached at x = ±ω, and ‖ω‖² is about d. So
/// float is safe up to d of about 100 and double up to 1000, for any x whose ‖x‖² does not
/// overflow. For x far from every ω all features underflow to 0.
///
/// Ω is not a parameter and is not saved with a layer. Save projection(), or the seed of redraw.
///
/// Throws std::invalid_argument for sizes below 1 and for x without the d rows of Ω.
/// Choromanski et al. 2021, arXiv 2009.14794, lemma 1 (hyperbolic cosine form) and section 2.4.
template <class S> class FavorPlus {
 public:
  using Projection = Eigen::Matrix<S, Dynamic, Dynamic>;  ///< one row per random feature
  static constexpr std::string_view name = "FavorPlus";

  /// Draws Ω of m columns for inputs of d rows.
  FavorPlus(Index d, Index m, std::uint64_t seed) : omega_(checked("d", d), checked("m", m)) {
    redraw(seed);
  }
  /// Uses the given Ω.
  explicit FavorPlus(Projection omega) : omega_(std::move(omega)) {
    checked("d", omega_.rows());
    checked("m", omega_.cols());
  }

  /// Draws a new Ω. The columns of each block of d are orthogonal to each other and have the
  /// lengths of Gaussian vectors. One seed gives one Ω, drawn in double for every S.
  void redraw(std::uint64_t seed) {
    Random random(seed);
    const Index d = omega_.rows();
    Eigen::MatrixXd gaussian(d, d);
    for (Index first = 0; first < omega_.cols(); first += d) {
      random.fill(gaussian);
      // The signs that QR leaves open do not matter: φ contains both ω and −ω.
      const Eigen::MatrixXd directions =
          Eigen::HouseholderQR<Eigen::MatrixXd>(gaussian).householderQ();
      random.fill(gaussian);
      for (Index i = 0; i < d && first + i < omega_.cols(); ++i)
        omega_.col(first + i) = (gaussian.row(i).norm() * directions.col(i)).template cast<S>();
    }
  }

  /// The random directions, one per row.
  const Projection& projection() const { return omega_; }

  template <class T> FavorPlus<T> cast() const {
    return FavorPlus<T>(omega_.template cast<T>().eval());
  }

  template <int D> static constexpr int fixed_features = Dynamic;
  Index features(Index d) const {
    if (d != omega_.rows())
      detail::throw_mismatch(name, "x", d, "rows", omega_.rows(), "the projection");
    return 2 * omega_.cols();
  }

  /// y ← φ(x), of one vector.
  template <class X, class Y> void map(const X& x, Y& y) const {
    detail::with_views([&](const auto& in, auto& out) { map_view(in, out); }, x, y);
  }

  template <class X, class Y, class Dy, class Dx>
  void vjp(const X& x, const Y& y, const Dy& dy, Dx& dx) const {
    detail::with_views([&](const auto& in, const auto& out, const auto& dout,
                           auto& din) { vjp_view(in, out, dout, din); },
                       x, y, dy, dx);
  }

  /// dΩ += the gradient of Ω, where y = φ(x).
  template <class X, class Y, class Dy, class DOmega>
  void projection_vjp(const X& x, const Y& y, const Dy& dy, DOmega& domega) const {
    with_score_gradient(y, dy, [&](const auto& dscores) {
      if constexpr (is_sequence_in_memory<X> && detail::has_contiguous_columns<DOmega>)
        detail::add_product(domega, x, dscores.transpose(), detail::one_block);
      else
        domega.noalias() += x * dscores.transpose();
    });
  }

 private:
  // Products with a sequence use the kernels of math/products.hpp, which fastweights::compiled
  // holds. Products with a token are Eigen's, which cost less for a single vector.
  template <class X>
  static constexpr bool is_sequence_in_memory =
      detail::has_contiguous_columns<X>&& X::ColsAtCompileTime != 1;

  template <class X, class Y> void map_view(const X& x, Y& y) const {
    const Index m = omega_.cols();
    auto scores = y.topRows(m);
    if constexpr (is_sequence_in_memory<X> && is_sequence_in_memory<Y>)
      detail::set_product(scores, omega_.transpose(), x, detail::one_block);
    else
      scores.noalias() = omega_.transpose() * x;
    const S log_scale = static_cast<S>(-0.5 * std::log(2.0 * static_cast<double>(m)));
    detail::for_each_column(
        x.cols(), [&](const auto& in, auto&& out) { exponentials(in, out, log_scale); }, x, y);
  }

  template <class X, class Y, class Dy, class Dx>
  void vjp_view(const X& x, const Y& y, const Dy& dy, Dx& dx) const {
    with_score_gradient(y, dy, [&](const auto& dscores) {
      if constexpr (is_sequence_in_memory<Dx>)
        detail::add_product(dx, omega_, dscores, detail::one_block);
      else
        dx.noalias() += omega_ * dscores;
    });
    detail::for_each_column(
        x.cols(),
        [](const auto& in, const auto& out, const auto& dout, auto&& din) {
          din -= dout.cwiseProduct(out).sum() * in;
        },
        x, y, dy, dx);
  }

  // From Ωᵀx in the first m rows of y to the features.
  template <class X, class Y> static void exponentials(const X& x, Y& y, const S& log_scale) {
    const S shift = log_scale - S(0.5) * x.cwiseProduct(x).sum();
    const Index m = y.size() / 2;
    auto plus = y.head(m).array();
    y.tail(m).array() = (shift - plus).exp();
    plus = (shift + plus).exp();
  }

  // Calls f with the gradient of Ωᵀx, m×T.
  template <class Y, class Dy, class F>
  void with_score_gradient(const Y& y, const Dy& dy, const F& f) const {
    const Index m = omega_.cols();
    scratch<S, Dynamic>(m * y.cols(), [&](auto& buffer) {
      using Scores = detail::PlainArray<S, Dynamic, Y::ColsAtCompileTime>;
      Eigen::Map<Scores> dscores(buffer.data(), m, y.cols());
      detail::for_each_column(
          y.cols(),
          [m](const auto& out, const auto& dout, auto&& dscore) {
            dscore =
                dout.head(m).cwiseProduct(out.head(m)) - dout.tail(m).cwiseProduct(out.tail(m));
          },
          y, dy, dscores);
      f(dscores);
    });
  }

  static Index checked(std::string_view which, Index size) {
    detail::check_size<Dynamic>(name, which, size);
    return size;
  }

  Projection omega_;
};

}  // namespace fw
