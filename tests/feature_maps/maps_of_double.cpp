#include "feature_maps/map_of.hpp"

namespace feature_map_checks {

namespace {

// Not inline: compiled once and not for every map.
template <int D, int T> EIGEN_DONT_INLINE Eigen::Matrix<double, D, T> operand(const MatrixXd& x) {
  return x;
}
template <int D, int T> EIGEN_DONT_INLINE MatrixXd result(const Eigen::Matrix<double, D, T>& y) {
  return y;
}

template <class M> class DoubleMapOf final : public MapOf<double, M, AnyDoubleMap> {
 public:
  using MapOf<double, M, AnyDoubleMap>::MapOf;

  MatrixXd map_fixed(const MatrixXd& x) const override { return mapped<Dynamic>(x); }
  VectorXd map_fixed(const VectorXd& x) const override { return mapped<1>(x); }
  MatrixXd gradient_fixed(const MatrixXd& x, const MatrixXd& y, const MatrixXd& dy) const override {
    return gradient<Dynamic>(x, y, dy);
  }
  VectorXd gradient_fixed(const VectorXd& x, const VectorXd& y, const VectorXd& dy) const override {
    return gradient<1>(x, y, dy);
  }

  void map_rows(const MatrixXd& x, Index first, Index rows, MatrixXd& y, Index to) const override {
    fw::apply(this->map_, x.middleRows(first, rows), y.middleRows(to, this->features(rows)));
  }

  void map_views(const MatrixXd& x, MatrixXd& y, Index column) const override {
    const fw::SequenceView<const double, Dynamic> in(x);
    fw::TokenView<double, Dynamic> out(y.col(column));
    fw::apply(this->map_, in, out);
  }

 private:
  static constexpr int fixed_features = M::template fixed_features<fixed_rows>;

  template <int T> MatrixXd mapped(const MatrixXd& x) const {
    const MatrixXd nan = MatrixXd::Constant(this->features(x.rows()), x.cols(),
                                            std::numeric_limits<double>::quiet_NaN());
    auto y = operand<fixed_features, T>(nan);
    fw::apply(this->map_, operand<fixed_rows, T>(x), y);
    return result(y);
  }
  template <int T>
  MatrixXd gradient(const MatrixXd& x, const MatrixXd& y, const MatrixXd& dy) const {
    auto dx = operand<fixed_rows, T>(MatrixXd::Zero(x.rows(), x.cols()));
    fw::apply_vjp(this->map_, operand<fixed_rows, T>(x), operand<fixed_features, T>(y),
                  operand<fixed_features, T>(dy), dx);
    return result(dx);
  }
};

// The fewest rows a map takes: ν < 2d.
template <class M> constexpr Index fewest_rows = 1;
template <> inline constexpr Index fewest_rows<fw::Dpfp<3>> = 3;
template <> inline constexpr Index fewest_rows<fw::SumNormalised<fw::Dpfp<2>>> = 3;

}  // namespace

std::vector<Kind> kinds() {
  std::vector<Kind> all;
  for (std::size_t i = 0; i < map_count; ++i)
    with_map(i, [&]<class M>() {
      static_assert(fw::FeatureMap<M>);
      all.push_back({i, std::string(M::name), fewest_rows<M>, std::is_same_v<M, fw::SumNormalise>});
    });
  return all;
}

std::unique_ptr<AnyDoubleMap> make_double_map(std::size_t kind, Index d) {
  std::unique_ptr<AnyDoubleMap> made;
  with_map(kind, [&]<class M>() { made = std::make_unique<DoubleMapOf<M>>(make<M>(d)); });
  return made;
}

template <> std::unique_ptr<AnyMap<double>> make_map(std::size_t kind, Index d) {
  return make_double_map(kind, d);
}

}  // namespace feature_map_checks
