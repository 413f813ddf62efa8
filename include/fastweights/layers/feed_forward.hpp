#pragma once

#include <fastweights/layers/parts.hpp>
#include <fastweights/networks/operations/experts.hpp>

namespace fw::inline FASTWEIGHTS_ABI::networks {

/// Options of feed_forward.
struct FeedForwardOptions {
  Index hidden = 0;  ///< rows between the two maps; 0: four times those of x
  Activation activation = Activation::relu;  ///< between them
  bool bias = true;                          ///< of both maps
};

/// W_2 f(W_1 x + b_1) + b_2, with the weights NAME.linear1 and NAME.linear2. Vaswani et al. 2017,
/// arXiv 1706.03762, eq. 2.
template <class S>
Value<S> feed_forward(const Value<S>& in, const std::string& name,
                      const FeedForwardOptions& o = {}) {
  return module(name, in, [&](const Value<S>& x) {
    const Value<S> hidden = linear(x, "linear1", o.hidden > 0 ? o.hidden : 4 * x.rows(), o.bias);
    return linear(activation(hidden, o.activation), "linear2", x.rows(), o.bias);
  });
}

/// W_down (silu(W_gate x) ⊙ W_up x) with `hidden` rows between, and the weights gate_proj, up_proj
/// and down_proj, or of other names. Shazeer 2020, arXiv 2002.05202, eq. 6.
template <class S>
Value<S> swiglu(const Value<S>& x, Index hidden, const ExpertNames& names = {}, bool bias = false) {
  return linear(silu(linear(x, names.gate, hidden, bias)) * linear(x, names.up, hidden, bias),
                names.down, x.rows(), bias);
}
/// The same, with the weights NAME.gate_proj, NAME.up_proj and NAME.down_proj.
template <class S>
Value<S> swiglu(const Value<S>& in, const std::string& name, Index hidden, bool bias = false) {
  return module(name, in, [&](const Value<S>& x) { return swiglu(x, hidden, {}, bias); });
}

}  // namespace fw::networks
