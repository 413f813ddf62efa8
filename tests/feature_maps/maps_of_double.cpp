#include "feature_maps/map_of.hpp"

namespace feature_map_checks {

namespace {

template <int D, int T> EIGEN_DONT_INLINE Eigen::Matrix<double, D, T> operand(const MatrixXd& x) {
  return x;
}
template <int D, int T> EIGEN_DONT_INLINE MatrixXd result(const Eigen::Matrix<double, D, T>& y) {
  return y;
}

template <class M> class DoubleMapOf final : public MapOf<double, M, AnyDoubleMap> {
 public:
  using Base = MapOf<double, M, AnyDoubleMap>;
  using Base::Base, Base::map, Base::gradient;

  MatrixXd map(const MatrixXd& x, Operands operands) const override {
    switch (operands) {
      case Operands::sequence:
        return this->map(x);
      case Operands::token:
        return mapped_as<Dynamic, 1>(x);
      case Operands::fixed_sequence:
        return mapped_as<fixed_rows, Dynamic>(x);
      case Operands::fixed_token:
        return mapped_as<fixed_rows, 1>(x);
    }
    return {};
  }

  MatrixXd gradient(const MatrixXd& x, const MatrixXd& y, const MatrixXd& dy,
                    Operands operands) const override {
    switch (operands) {
      case Operands::sequence:
        return this->gradient(x, y, dy);
      case Operands::token:
        return gradient_as<Dynamic, 1>(x, y, dy);
      case Operands::fixed_sequence:
        return gradient_as<fixed_rows, Dynamic>(x, y, dy);
      case Operands::fixed_token:
        return gradient_as<fixed_rows, 1>(x, y, dy);
    }
    return {};
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
  template <int D> static constexpr int features_of = M::template fixed_features<D>;

  template <int D, int T> MatrixXd mapped_as(const MatrixXd& x) const {
    auto y = operand<features_of<D>, T>(nan<double>(this->features(x.rows()), x.cols()));
    fw::apply(this->map_, operand<D, T>(x), y);
    return result(y);
  }
  template <int D, int T>
  MatrixXd gradient_as(const MatrixXd& x, const MatrixXd& y, const MatrixXd& dy) const {
    constexpr int features = features_of<D>;
    auto dx = operand<D, T>(MatrixXd::Zero(x.rows(), x.cols()));
    fw::apply_vjp(this->map_, operand<D, T>(x), operand<features, T>(y), operand<features, T>(dy),
                  dx);
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
