#include <fastweights/memories/rules/gated_delta_rule.hpp>

#include "bind_rule.hpp"

namespace fw::python {

namespace {

template <class S> using GatedDeltaRuleType = fw::GatedDeltaRule<S>;
struct GatedDeltaRule : PlainRule<GatedDeltaRuleType> {
  static constexpr const char* name = "GatedDeltaRule";
  static constexpr const char* doc =
      R"(The gated delta rule: the state decays, then the delta rule updates the value under the key.

    W = decay W      u = beta (v - W k)      W = W + u k^T      y = W q

query and key [..., d_k], value and output [..., d_v], beta one number in [0, 2], decay one in (0, 1], the
exponential of the log decay g of other code. Stable for beta |k|^2 <= 2: normalise the keys. Yang,
Kautz, Hatamizadeh 2024, arXiv 2412.06464.)";
};

}  // namespace

void bind_gated_delta_rule(nb::module_& m) { bind_rule<GatedDeltaRule>(m); }

}  // namespace fw::python
