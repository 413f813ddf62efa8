#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/layers/memory/fast_weight_layer.hpp>
#include <fastweights/layers/norms/rms_norm.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>

#include "support/layer_checks.hpp"

using fw::Index;
using layer_checks::check_layer;
using layer_checks::Complex;

namespace {

template <class S>
using Delta = fw::FastWeightLayer<fw::GatedDeltaRule<S>, fw::L2Normalise, fw::RmsNorm<S>>;
template <class S> using Kimi = fw::GatedDeltaRule<S, 4, 3, fw::KeyValueBetaVectorDecay>;

}  // namespace

TEST_CASE("FastWeightLayer: gated delta rule, one decay per token or per key row", "[layers]") {
  for (Index heads : {1, 3})
    check_layer(Delta<double>({.d_model = 7, .heads = heads},
                              fw::GatedDeltaRule<double>({.key_size = 4, .value_size = 5})),
                Delta<Complex>({.d_model = 7, .heads = heads},
                               fw::GatedDeltaRule<Complex>({.key_size = 4, .value_size = 5})),
                {1, 3, 17});
  const fw::FastWeightOptions options{.d_model = 6, .heads = 2, .scale = 0.5, .bias = true};
  check_layer(fw::FastWeightLayer<Kimi<double>, fw::L2Normalise>(options, Kimi<double>()),
              fw::FastWeightLayer<Kimi<Complex>, fw::L2Normalise>(options, Kimi<Complex>()),
              {1, 5});
}
