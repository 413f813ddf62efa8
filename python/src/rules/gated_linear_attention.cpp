#include <fastweights/memories/rules/gated_linear_attention.hpp>

#include "bind_rule.hpp"

namespace fw::python {

namespace {

template <class S> using GatedLinearAttentionType = fw::GatedLinearAttention<S>;
struct GatedLinearAttention : PlainRule<GatedLinearAttentionType> {
  static constexpr const char* name = "GatedLinearAttention";
  static constexpr const char* doc =
      R"(Gated linear attention: the sum rule with a decay per key row and token.

    W = W diag(decay) + v k^T      y = W q

query, key and decay [..., d_k], value and output [..., d_v]; decay in (0, 1], the exponential of the
log decay g of other code. Yang et al. 2023, arXiv 2312.06635.)";
};

}  // namespace

void bind_gated_linear_attention(nb::module_& m) { bind_rule<GatedLinearAttention>(m); }

}  // namespace fw::python
