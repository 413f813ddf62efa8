#include <fastweights/memories/rules/gated_linear_attention.hpp>

#include "bind_rule.hpp"

namespace fw::python {

namespace {

template <class S>
using SimpleGatedLinearAttentionType = fw::GatedLinearAttention<S, Dynamic, Dynamic, KeyValueDecay>;
struct SimpleGatedLinearAttention : PlainRule<SimpleGatedLinearAttentionType> {
  static constexpr const char* name = "SimpleGatedLinearAttention";
  static constexpr const char* doc =
      R"(Simple gated linear attention, the recurrence of Mamba-2: one decay per token.

    W = decay W + v k^T      y = W q

query and key [..., d_k], value and output [..., d_v], decay one number in (0, 1]. Dao & Gu 2024,
arXiv 2405.21060.)";
};

}  // namespace

void bind_simple_gated_linear_attention(nb::module_& m) {
  bind_rule<SimpleGatedLinearAttention>(m);
}

}  // namespace fw::python
