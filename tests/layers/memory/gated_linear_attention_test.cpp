#include <fastweights/feature_maps/dpfp.hpp>
#include <fastweights/layers/memory/fast_weight_layer.hpp>
#include <fastweights/memories/rules/gated_linear_attention.hpp>

#include "support/layer_checks.hpp"

using layer_checks::check_layer;
using layer_checks::Complex;
using layer_checks::parameter_names;

namespace {

template <class S> using Mapped = fw::FastWeightLayer<fw::GatedLinearAttention<S>, fw::Dpfp<2>>;

}  // namespace

TEST_CASE("FastWeightLayer: gated linear attention, one decay per feature", "[layers]") {
  const fw::FastWeightOptions options{.d_model = 6, .heads = 2, .d_key = 2};
  const Mapped<double> layer(options,
                             fw::GatedLinearAttention<double>({.key_size = 8, .value_size = 3}));
  check_layer(
      layer,
      Mapped<Complex>(options, fw::GatedLinearAttention<Complex>({.key_size = 8, .value_size = 3})),
      {1, 9});
  CHECK(parameter_names(layer) ==
        "write.key.weight\nwrite.value.weight\nwrite.decay.weight\nread.query.weight\n"
        "output.weight\n");
  CHECK(layer.write.key.weight.rows() == 2 * 2);
  CHECK(layer.write.decay.weight.rows() == 2 * 8);
}
