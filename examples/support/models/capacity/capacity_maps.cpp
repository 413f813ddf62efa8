#include "models/capacity/capacity_maps.hpp"

#include <fastweights/feature_maps/chain.hpp>
#include <fastweights/feature_maps/dpfp.hpp>
#include <fastweights/feature_maps/elu_plus_one.hpp>
#include <fastweights/feature_maps/favor_plus.hpp>
#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/feature_maps/tanh.hpp>
#include <stdexcept>

namespace {

// The map, or behind it the division by the sum of the features.
template <class Map> AnyMap<float> map_or_normalised(Map map, bool normalised) {
  if (!normalised) return map;
  return fw::SumNormalised<Map>(std::move(map), fw::SumNormalise());
}

}  // namespace

AnyMap<float> capacity_map(const std::string& name, fw::Index d_key, bool normalised) {
  if (name == "linear") return map_or_normalised(fw::EluPlusOne(), normalised);
  if (name == "tanh" && !normalised) return fw::TanhMap();
  if (name == "dpfp1") return map_or_normalised(fw::Dpfp<1>(), normalised);
  if (name == "dpfp2") return map_or_normalised(fw::Dpfp<2>(), normalised);
  if (name == "dpfp3") return map_or_normalised(fw::Dpfp<3>(), normalised);
  if (name.starts_with("favor"))
    return map_or_normalised(fw::FavorPlus<float>(d_key, std::stoi(name.substr(5)), 1), normalised);
  throw std::invalid_argument("capacity: no feature map is called " + name);
}
