#pragma once

#include <Eigen/Core>
#include <complex>
#include <cstdint>
#include <memory>
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

/// The Eigen types of the operands: with columns in number that is known at compile time (a token)
/// or not (a sequence), and rows likewise.
enum class Operands { sequence, token, fixed_sequence, fixed_token };
/// How many rows operands of fixed size have.
inline constexpr int fixed_rows = 5;

/// A feature map for scalar S.
template <class S> class AnyMap {
 public:
  using Matrix = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic>;
  virtual ~AnyMap() = default;

  virtual Index features(Index d) const = 0;
  /// φ(x), written over NaN.
  virtual Matrix map(const Matrix& x) const = 0;
  /// dx += J(x)ᵀ dy.
  virtual void add_gradient(const Matrix& x, const Matrix& y, const Matrix& dy,
                            Matrix& dx) const = 0;
  Matrix gradient(const Matrix& x, const Matrix& y, const Matrix& dy) const {
    Matrix dx = Matrix::Zero(x.rows(), x.cols());
    add_gradient(x, y, dy, dx);
    return dx;
  }
};

/// A feature map in double, for operands of several types.
class AnyDoubleMap : public AnyMap<double> {
 public:
  using AnyMap<double>::map;
  using AnyMap<double>::gradient;
  virtual MatrixXd map(const MatrixXd& x, Operands operands) const = 0;
  virtual MatrixXd gradient(const MatrixXd& x, const MatrixXd& y, const MatrixXd& dy,
                            Operands operands) const = 0;
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
