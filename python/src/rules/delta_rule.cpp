#include <fastweights/memories/rules/delta_rule.hpp>

#include "bind_rule.hpp"

namespace fw::python {

namespace {

template <class S> using DeltaRuleType = fw::DeltaRule<S>;
struct DeltaRule : PlainRule<DeltaRuleType> {
  static constexpr const char* name = "DeltaRule";
  static constexpr const char* doc =
      R"(The delta rule: writes the difference between the value and what the key retrieves.

    u = beta (v - W k)      W = W + u k^T      y = W q

query and key [..., d_k], value and output [..., d_v], beta one number in [0, 2]. Stable for
beta |k|^2 <= 2: normalise the keys. Schlag, Irie, Schmidhuber 2021, arXiv 2102.11174, eq. 23-25.)";
};

}  // namespace

void bind_delta_rule(nb::module_& m) { bind_rule<DeltaRule>(m); }

}  // namespace fw::python
