#include <fastweights/layers/memory/fast_weight_layer.hpp>
#include <fastweights/layers/norms/layer_norm.hpp>
#include <fastweights/memories/attention/key_value_cache.hpp>

#include "support/layer_checks.hpp"

using layer_checks::check_layer;
using layer_checks::Complex;

namespace {

template <class S>
using Softmax = fw::FastWeightLayer<fw::KeyValueCache<S>, fw::IdentityMap, fw::LayerNorm<S>>;

}  // namespace

TEST_CASE("FastWeightLayer: softmax cache", "[layers]") {
  check_layer(Softmax<double>(
                  {.d_model = 6, .heads = 2},
                  fw::KeyValueCache<double>({.key_size = 5, .value_size = 3}, {.capacity = 32})),
              Softmax<Complex>(
                  {.d_model = 6, .heads = 2},
                  fw::KeyValueCache<Complex>({.key_size = 5, .value_size = 3}, {.capacity = 32})),
              {1, 9});
}
