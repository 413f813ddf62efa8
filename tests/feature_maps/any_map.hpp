#pragma once

#include <Eigen/Core>
#include <complex>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

/// \file
/// Feature maps without their types: the tests are ordinary functions of these, compiled once, and
/// a map adds one class with an interface to fw::apply and fw::apply_vjp.

namespace feature_map_checks {

using Eigen::Index;
using Eigen::MatrixXcd;
using Eigen::MatrixXd;
using Eigen::MatrixXf;
using Eigen::VectorXd;
using Eigen::VectorXf;

/// A feature map for scalar S. A token is a vector, a sequence a matrix of dynamic sizes.
template <class S> class AnyMap {
 public:
  using Matrix = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic>;
  using Vector = Eigen::Matrix<S, Eigen::Dynamic, 1>;
  virtual ~AnyMap() = default;

  virtual Index features(Index d) const = 0;
  virtual void apply(const Matrix& x, Matrix& y) const = 0;
  virtual void apply(const Vector& x, Vector& y) const = 0;
  virtual void apply_vjp(const Matrix& x, const Matrix& y, const Matrix& dy, Matrix& dx) const = 0;
  virtual void apply_vjp(const Vector& x, const Vector& y, const Vector& dy, Vector& dx) const = 0;

  /// φ(x), written over NaN.
  template <int T> auto map(const Eigen::Matrix<S, Eigen::Dynamic, T>& x) const {
    using Y = Eigen::Matrix<S, Eigen::Dynamic, T>;
    constexpr auto nan = std::numeric_limits<float>::quiet_NaN();
    Y y = Y::Constant(features(x.rows()), x.cols(), S(nan));
    apply(x, y);
    return y;
  }
  /// J(x)ᵀ dy, where y = φ(x).
  template <int T>
  auto gradient(const Eigen::Matrix<S, Eigen::Dynamic, T>& x,
                const Eigen::Matrix<S, Eigen::Dynamic, T>& y,
                const Eigen::Matrix<S, Eigen::Dynamic, T>& dy) const {
    using X = Eigen::Matrix<S, Eigen::Dynamic, T>;
    X dx = X::Zero(x.rows(), x.cols());
    apply_vjp(x, y, dy, dx);
    return dx;
  }
};

/// Rows of operands of fixed size.
inline constexpr int fixed_rows = 5;

/// A feature map in double, for operands of other types as well.
class AnyDoubleMap : public AnyMap<double> {
 public:
  virtual MatrixXd map_fixed(const MatrixXd& x) const = 0;
  virtual VectorXd map_fixed(const VectorXd& x) const = 0;
  virtual MatrixXd gradient_fixed(const MatrixXd& x, const MatrixXd& y,
                                  const MatrixXd& dy) const = 0;
  virtual VectorXd gradient_fixed(const VectorXd& x, const VectorXd& y,
                                  const VectorXd& dy) const = 0;
  /// Maps `rows` rows of x from row `first` on to the rows of y from row `to` on.
  virtual void map_rows(const MatrixXd& x, Index first, Index rows, MatrixXd& y,
                        Index to) const = 0;
  /// Maps a view of x to a view of one column of y.
  virtual void map_views(const MatrixXd& x, MatrixXd& y, Index column) const = 0;
};

/// φ(x) and its derivatives with respect to the three entries of x, by automatic differentiation.
struct Derivatives {
  VectorXd values;
  MatrixXd jacobian;
};

/// One of the maps that all tests try.
struct Kind {
  std::size_t index;
  std::string name;
  Index fewest_rows;    // what the map takes
  bool takes_positive;  // a sum of other entries could cancel
};
std::vector<Kind> kinds();

/// The map of a kind for inputs of d rows; in every scalar the same numbers.
template <class S> std::unique_ptr<AnyMap<S>> make_map(std::size_t kind, Index d);
template <> std::unique_ptr<AnyMap<double>> make_map(std::size_t kind, Index d);
extern template std::unique_ptr<AnyMap<float>> make_map(std::size_t kind, Index d);
extern template std::unique_ptr<AnyMap<std::complex<double>>> make_map(std::size_t kind, Index d);
std::unique_ptr<AnyDoubleMap> make_double_map(std::size_t kind, Index d);
Derivatives autodiff(std::size_t kind, const Eigen::Vector3d& x);

/// Normal entries, of lengths that FAVOR+ is made for.
MatrixXd input(Index d, Index steps, bool positive = false);
inline MatrixXd input(const Kind& kind, Index d, Index steps) {
  return input(d, steps, kind.takes_positive);
}

/// A gradient for y. Not y itself: L2Normalise has no gradient along it.
MatrixXd random_gradient(const MatrixXd& y);

/// max|a − b| / max|b|, and infinite where anything is NaN.
double difference(const MatrixXd& a, const MatrixXd& b);

/// The gradient of Σ dy∘φ(x) by the complex step; all columns at once, as each goes by itself.
MatrixXd complex_step(const AnyMap<std::complex<double>>& map, const MatrixXd& x,
                      const MatrixXd& dy);

/// The message of the std::invalid_argument that `call` throws.
template <class F> std::string message(const F& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing thrown";
}

}  // namespace feature_map_checks
