#pragma once

#include <fastweights/layers/fast_weights.hpp>

namespace fw::inline FASTWEIGHTS_ABI {

/// Options of a FastWeightLayer.
struct FastWeightOptions {
  Index d_model;
  Index heads = 1;
  Index d_key = 0;    ///< rows of a key before the feature map; 0: those of the memory's keys
  double scale = 1;   ///< factor of the memory's output
  bool bias = false;  ///< of the slow projections and of the output
  networks::HeadNorm norm = networks::HeadNorm::none;
  bool allow_unstable = false;  ///< accept a map whose keys can make the memory unstable
};

/// One layer around a rule, for programs without a network of their own: the network of
/// networks::fast_weights(), with d_model inputs and outputs. It is used as every network is:
///
///     fw::FastWeightLayer layer({.d_model = 64, .heads = 4}, fw::DeltaRule<float>({16, 16}),
///                               fw::L2Normalise());
///     fw::initialise(layer, random);
///     auto state = layer.initial_state();
///     layer.forward(state, x, y, trace, fw::Pass::train);
///
/// Equation of the gated delta rule, of every head:
///
///     k, q = φ(W_k x), φ(W_q x)     v = W_v x     β = σ(W_β x)     α = σ(W_α x)^(1/16)
///     o = scale · memory(k, v, β, α, q)            y = W_o [norm(o_1); …; norm(o_H)]
///
/// Shapes: x, y d_model×T, or d_model×BT for B sequences. Cost per token: 2 d_model times the rows
/// of all projections, plus H steps of the memory. Throws std::invalid_argument when a size does
/// not fit; and for a delta rule whose keys nothing bounds, unless `allow_unstable`. Schlag, Irie,
/// Schmidhuber 2021, arXiv 2102.11174, section 4.
template <Memory M, FeatureMap KeyMap = IdentityMap>
struct FastWeightLayer : networks::Network<typename M::Scalar> {
  using Scalar = typename M::Scalar;
  static constexpr std::string_view name = "FastWeightLayer";

  /// Projections are zero until initialised or loaded.
  FastWeightLayer(const FastWeightOptions& o, M rule, KeyMap map = {})
      : networks::Network<Scalar>(network(o, std::move(rule), std::move(map))) {}

 private:
  static networks::Network<Scalar> network(const FastWeightOptions& o, M rule, KeyMap map) {
    detail::check_size<Dynamic>(name, "d_model", o.d_model);
    networks::Builder<Scalar> net;
    const networks::FastWeightsOptions options{.heads = o.heads,
                                               .key_size = o.d_key,
                                               .scale = o.scale,
                                               .bias = o.bias,
                                               .norm = o.norm,
                                               .allow_unstable = o.allow_unstable};
    // The module's name is for errors and states; names of weights start behind it.
    auto made = net.build(networks::fast_weights(net.input(o.d_model), std::string(name),
                                                 std::move(rule), options, std::move(map)));
    for (auto& weight : made.weights) {  // with the middle of what is drawn
      weight.name.erase(0, name.size() + 1);
      weight.value.setConstant(weight.rows(), weight.cols(), Scalar(weight.initialiser(0.5, 0)));
    }
    return made;
  }
};

}  // namespace fw
