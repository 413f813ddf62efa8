#include "feature_maps/any_map.hpp"

#include <cmath>
#include <fastweights/math/random.hpp>
#include <limits>

#include "support/largest_entry.hpp"

namespace feature_map_checks {

MatrixXd input(Index d, Index steps, bool positive) {
  MatrixXd x(d, steps);
  fw::Random(1).fill(x, std::pow(static_cast<double>(d), -0.25));
  if (positive) x = x.cwiseAbs().array() + 0.1;
  return x;
}

MatrixXd random_gradient(const MatrixXd& y) {
  MatrixXd dy(y.rows(), y.cols());
  fw::Random(2).fill(dy);
  return dy;
}

double difference(const MatrixXd& a, const MatrixXd& b) {
  if (a.hasNaN() || b.hasNaN()) return std::numeric_limits<double>::infinity();
  const double largest = b.cwiseAbs().maxCoeff();
  const double worst = largest_entry(a - b);
  return largest > 0 ? worst / largest : worst;
}

MatrixXd complex_step(const AnyMap<std::complex<double>>& map, const MatrixXd& x,
                      const MatrixXd& dy) {
  constexpr double h = 1e-30;
  MatrixXcd z = x.cast<std::complex<double>>();
  MatrixXd dx(x.rows(), x.cols());
  for (Index i = 0; i < x.rows(); ++i) {
    z.row(i).array() += std::complex<double>(0, h);
    const MatrixXd imaginary = map.map(z).imag();
    dx.row(i) = imaginary.cwiseProduct(dy).colwise().sum() / h;
    z.row(i) = x.row(i).cast<std::complex<double>>();
  }
  return dx;
}

}  // namespace feature_map_checks
