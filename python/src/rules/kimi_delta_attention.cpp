#include <fastweights/memories/rules/gated_delta_rule.hpp>

#include "bind_rule.hpp"

namespace fw::python {

namespace {

template <class S>
using KimiDeltaAttentionType = fw::GatedDeltaRule<S, Dynamic, Dynamic, KeyValueBetaVectorDecay>;
struct KimiDeltaAttention : PlainRule<KimiDeltaAttentionType> {
  static constexpr const char* name = "KimiDeltaAttention";
  static constexpr const char* doc =
      R"(The gated delta rule with a decay per key row: Kimi delta attention.

    W = W diag(decay)      u = beta (v - W k)      W = W + u k^T      y = W q

query, key and decay [..., d_k], value and output [..., d_v], beta one number in [0, 2]; decay in (0, 1].
Stable for beta |k|^2 <= 2: normalise the keys. Kimi Team 2025, arXiv 2510.26692.)";
};

}  // namespace

void bind_kimi_delta_attention(nb::module_& m) { bind_rule<KimiDeltaAttention>(m); }

}  // namespace fw::python
