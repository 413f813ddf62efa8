#pragma once

#include <fastweights/models/config.hpp>
#include <fastweights/networks/operations.hpp>

/// \file
/// Parts that several architectures share, under the names that most of them publish.

namespace fw::inline FASTWEIGHTS_ABI::models {

using namespace fw::networks;

/// What a model's builder needs besides its config.json.
struct ModelOptions {
  Index context = 0;  ///< tokens that attention can look back; 0: max_position_embeddings
};

inline Index context_of(const Config& c, const ModelOptions& options) {
  return options.context > 0 ? options.context : c.size("max_position_embeddings", 4096);
}

/// A gated feed-forward layer: down(silu(gate x) ⊙ up x). Shazeer 2020, arXiv 2002.05202, eq. 6.
template <class S> Value<S> swiglu(const Value<S>& x, Index hidden, const ExpertNames& names = {}) {
  return linear(silu(linear(x, names.gate, hidden)) * linear(x, names.up, hidden), names.down,
                x.rows());
}

/// The decay factor of the gated delta rules and Mamba-2: exp(−exp(A_log) softplus(x + dt_bias)),
/// for every head, or for every key row of a head.
template <class S>
Value<S> softplus_decay(const Value<S>& x, Index heads, const std::string& a_log = "A_log",
                        const std::string& bias = "dt_bias") {
  Builder<S>& net = *x.builder;
  const auto draw = [](double uniform, double) { return std::log(1 + 15 * uniform); };
  return exp(
      -(softplus(x + parameter(net, bias, x.rows())) * exp(parameter(net, a_log, heads, draw))));
}

}  // namespace fw::models
