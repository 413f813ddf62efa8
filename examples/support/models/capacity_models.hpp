#pragma once

#include <array>
#include <string>
#include <vector>

#include "training/capacity_trainer.hpp"

/// \file
/// The models of both settings by the names that the authors' logs give them.

struct CapacityModel {
  std::string key, title;
  bool large = true;  ///< in setting 2, whether beyond the first S unless told
};

/// Setting 1: the sum rule with every feature map, and softmax attention.
inline const std::array<CapacityModel, 8> capacity_models{{{"linear_sum", "ELU+1"},
                                                           {"dpfp1_sum", "DPFP-1"},
                                                           {"dpfp2_sum", "DPFP-2"},
                                                           {"dpfp3_sum", "DPFP-3"},
                                                           {"favor64_sum", "FAVOR+, m = 64"},
                                                           {"favor128_sum", "FAVOR+, m = 128"},
                                                           {"favor512_sum", "FAVOR+, m = 512"},
                                                           {"softmax_cat", "softmax"}}};

/// Setting 2: update rules. Those of the authors' figures are run at every S, and the gated rule,
/// which is in the text of the paper alone; other pairs of rule and map at the first S. The fast
/// weight memory is brought into the unit ball by its first write too, which the authors leave out.
/// With tanh it trains for tens of thousands of steps of 128, hours beyond the first S.
inline const std::array<CapacityModel, 23> update_models{
    {{"linear_sum", "sum, ELU+1"},
     {"dpfp1_sum", "sum, DPFP-1"},
     {"dpfp2_sum", "sum, DPFP-2", false},
     {"dpfp3_sum", "sum, DPFP-3", false},
     {"favor64_sum", "sum, FAVOR+, m = 64", false},
     {"favor128_sum", "sum, FAVOR+, m = 128", false},
     {"favor512_sum", "sum, FAVOR+, m = 512", false},
     {"linear_ours", "delta, ELU+1"},
     {"dpfp1_ours", "delta, DPFP-1"},
     {"dpfp2_ours", "delta, DPFP-2"},
     {"dpfp3_ours", "delta, DPFP-3", false},
     {"favor64_ours", "delta, FAVOR+, m = 64"},
     {"favor128_ours", "delta, FAVOR+, m = 128"},
     {"favor512_ours", "delta, FAVOR+, m = 512", false},
     {"linear_gated", "gated, ELU+1"},
     {"dpfp1_gated", "gated, DPFP-1"},
     {"dpfp2_gated", "gated, DPFP-2"},
     {"dpfp3_gated", "gated, DPFP-3", false},
     {"favor64_gated", "gated, FAVOR+, m = 64", false},
     {"favor128_gated", "gated, FAVOR+, m = 128", false},
     {"favor512_gated", "gated, FAVOR+, m = 512", false},
     {"dpfp1_fwm", "fast weight memory, DPFP-1"},
     {"tanh_fwm", "fast weight memory, tanh", false}}};

/// The sizes of setting 2 unless told.
inline std::vector<int> update_sizes(const CapacityModel& model) {
  return model.large ? std::vector{20, 60, 100} : std::vector{20};
}

/// Calls f(map) with the feature map of that name, "dpfp2" or "favor64".
template <class F> auto with_map(const std::string& name, fw::Index d_key, const F& f) {
  if (name == "linear") return f(fw::EluPlusOne());
  if (name == "tanh") return f(fw::TanhMap());
  if (name == "dpfp1") return f(fw::Dpfp<1>());
  if (name == "dpfp2") return f(fw::Dpfp<2>());
  if (name == "dpfp3") return f(fw::Dpfp<3>());
  if (name.rfind("favor", 0) == 0)
    return f(fw::FavorPlus<float>(d_key, std::stoi(name.substr(5)), 1));
  throw std::invalid_argument("capacity: no feature map is called " + name);
}

/// Trains the model of that name, "dpfp1_ours".
inline CapacityResult train_capacity(const std::string& model, CapacityOptions o) {
  const auto train = [&o]<class Rule>(Rule rule) {
    return CapacityTrainer<Rule>(o, std::move(rule)).train();
  };
  if (model == "softmax_cat") {
    o.fan = true;
    return train(SoftmaxRule<>(o.symbols, o.d_key, {}));
  }
  const auto split = model.find('_');
  const std::string rule = model.substr(split + 1);
  if (model == "tanh_fwm") o.rate = 1e-4, o.batch = 128;  // as the authors did
  return with_map(model.substr(0, split), o.d_key, [&]<class Map>(Map map) {
    using Normalised = fw::SumNormalised<Map>;
    const fw::Index S = o.symbols;
    if (rule == "sum") return train(SumRule<Map>(S, o.d_key, std::move(map)));
    if (rule == "fwm")
      return train(MemoryRule<fw::FastWeightMemory<float>, Map>(S, o.d_key, std::move(map)));
    Normalised normalised(std::move(map), fw::SumNormalise());
    if (rule == "ours")
      return train(MemoryRule<fw::DeltaRule<float>, Normalised>(S, o.d_key, std::move(normalised)));
    using Gated = fw::GatedLinearAttention<float, fw::Dynamic, fw::Dynamic, fw::KeyValueDecay>;
    if (rule == "gated")
      return train(MemoryRule<Gated, Normalised>(S, o.d_key, std::move(normalised)));
    throw std::invalid_argument("capacity: no rule is called " + rule);
  });
}
