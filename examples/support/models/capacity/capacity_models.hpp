#pragma once

#include <array>
#include <string>
#include <vector>

#include "training/experiments/capacity_trainer.hpp"

/// \file
/// The models of both settings, with the names of the authors' logs.

struct CapacityModel {
  std::string key, title;
  bool large = true;  ///< in setting 2: by default at all S, otherwise at the first
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

/// Setting 2: update rules. The rules of the authors' figures run at every S, and so does the gated
/// rule, which only the text of the paper has; other pairs of rule and map run at the first S. The
/// fast weight memory is scaled into the unit ball after its first write too, unlike the authors'.
/// With tanh it trains for tens of thousands of steps of 128, which takes hours beyond the first S.
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

/// The default sizes of setting 2.
inline std::vector<int> update_sizes(const CapacityModel& model) {
  return model.large ? std::vector{20, 60, 100} : std::vector{20};
}

/// Trains the model of that name, "dpfp1_ours".
CapacityResult train_capacity(const std::string& model, CapacityOptions o);
