#include <fastweights/feature_maps/chain.hpp>
#include <fastweights/feature_maps/dpfp.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/feature_maps/favor_plus.hpp>
#include <fastweights/feature_maps/relu.hpp>
#include <fastweights/feature_maps/tanh.hpp>

#include "case.hpp"

namespace reference {

namespace {

// Batch and time as one axis: D×(B·T).
Eigen::Map<Matrix> columns(Array& array) {
  const Index d = array.shape.back();
  return {array.values.data(), d, Index(array.values.size()) / d};
}

template <class Map> void run(Case& file, const Map& map) {
  Array x = file["x"], phi = file.like("phi"), up = file["up_phi"], dx = file.like("x", 0);
  fw::apply(map, columns(x), columns(phi));
  fw::apply_vjp(map, columns(x), columns(phi), columns(up), columns(dx));
  file.forward("phi", phi);
  file.gradient("grad_x", dx);
}

template <class Map> void fixed_map(Case& file) { run(file, Map()); }

void favor_plus(Case& file) {
  Array omega = file["Omega"], x = file["x"], phi = file["phi"], up = file["up_phi"],
        domega = file.like("Omega");
  const fw::FavorPlus<double> map{Matrix(omega.matrix())};
  run(file, map);
  Matrix dprojection = Matrix::Zero(omega.axis(0), omega.axis(1));
  map.projection_vjp(columns(x), columns(phi), columns(up), dprojection);
  domega.matrix() = dprojection;
  file.gradient("grad_Omega", domega);
}

}  // namespace

std::map<std::string, Test> feature_map_tests() {
  return {{"phi_relu", fixed_map<fw::ReluMap>},
          {"phi_tanh", fixed_map<fw::TanhMap>},
          {"phi_elu1", fixed_map<fw::EluPlusOne>},
          {"phi_dpfp1", fixed_map<fw::Dpfp<1>>},
          {"phi_dpfp2", fixed_map<fw::Dpfp<2>>},
          {"phi_dpfp3", fixed_map<fw::Dpfp<3>>},
          {"phi_sumnorm_elu1", fixed_map<fw::SumNormalised<fw::EluPlusOne>>},
          {"phi_sumnorm_dpfp2", fixed_map<fw::SumNormalised<fw::Dpfp<2>>>},
          {"phi_favor_plus", favor_plus}};
}

}  // namespace reference
