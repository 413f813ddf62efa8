#pragma once

#include <fastweights/layers/memory/fast_weight_layer.hpp>

#include "support/layer_checks.hpp"

/// \file
/// The laws of a layer around a recurrent memory.

namespace recurrent_checks {

template <template <class, int, int> class Rule, class Map>
void check_around(fw::Index dk, fw::Index dv) {
  using M = Rule<double, fw::Dynamic, fw::Dynamic>;
  using Z = Rule<layer_checks::Complex, fw::Dynamic, fw::Dynamic>;
  const fw::FastWeightOptions options{
      .d_model = 5, .heads = 2, .scale = 0.5, .bias = true, .allow_unstable = true};
  layer_checks::check_layer(fw::FastWeightLayer<M, Map>(options, M({dk, dv})),
                            fw::FastWeightLayer<Z, Map>(options, Z({dk, dv})), {1, 9});
}

}  // namespace recurrent_checks
