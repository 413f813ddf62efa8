#pragma once

#include <fastweights/layers/parts.hpp>

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Options of language_model.
struct LanguageModelOptions {
  Index symbols = 0;      ///< that ids name, and logits stand for
  Index width = 0;        ///< rows of the value that the blocks change
  Index layers = 1;       ///< blocks
  bool tied = false;      ///< the logits use the table of the embedding
  NormOptions norm = {};  ///< the last one
};

/// An embedding, `layers` blocks, an RMS norm, and a linear map to logits, one a symbol. A block is
/// a function of a value; its weights are those of layers.0, layers.1, …
///
///     auto network = fw::language_model<float>({.symbols = 256, .width = 64}, [](const auto& x) {
///       return x + gated_delta_net(rms_norm(x, "norm", {}), "mixer", {.heads = {2, 2, 32, 32}});
///     });
///
/// Other names: embed_tokens, norm, lm_head. Throws std::invalid_argument for a size below 1.
template <class S, class Block>
Network<S> language_model(const LanguageModelOptions& o, const Block& block) {
  fw::detail::check_size<Dynamic>("language_model", "symbols", o.symbols);
  fw::detail::check_size<Dynamic>("language_model", "width", o.width);
  fw::detail::check_size<Dynamic>("language_model", "layers", o.layers);
  Builder<S> net;
  Value<S> x = embedding(net, "embed_tokens", o.symbols, o.width);
  for (Index i = 0; i < o.layers; ++i) x = module("layers." + std::to_string(i), x, block);
  return net.build(
      linear(rms_norm(x, "norm", o.norm), o.tied ? "embed_tokens" : "lm_head", o.symbols));
}

}  // namespace fw::networks

namespace fw::inline FASTWEIGHTS_ABI {
using networks::language_model;
}
