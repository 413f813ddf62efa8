#include <Eigen/Core>
#include <unsupported/Eigen/AutoDiff>

#include "feature_maps/map_of.hpp"

namespace feature_map_checks {

template std::unique_ptr<AnyMap<float>> make_map(std::size_t kind, Index d);
template std::unique_ptr<AnyMap<std::complex<double>>> make_map(std::size_t kind, Index d);

Derivatives autodiff(std::size_t kind, const Eigen::Vector3d& x) {
  using Scalar = Eigen::AutoDiffScalar<Eigen::Vector3d>;
  Eigen::Matrix<Scalar, Dynamic, 1> seeded(3), y;
  for (int i = 0; i < 3; ++i) seeded[i] = Scalar(x[i], 3, i);
  with_map(kind, [&]<class M>() {
    const auto map = fw::cast_feature_map<Scalar>(make<M>(3));
    y.setConstant(map.features(3), Scalar(std::numeric_limits<double>::quiet_NaN()));
    fw::apply(map, seeded, y);
  });
  Derivatives all{VectorXd(y.size()), MatrixXd(y.size(), 3)};
  for (Index f = 0; f < y.size(); ++f) {
    all.values[f] = y[f].value();
    all.jacobian.row(f) = y[f].derivatives();
  }
  return all;
}

}  // namespace feature_map_checks
