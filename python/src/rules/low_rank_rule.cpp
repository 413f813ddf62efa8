#include <fastweights/memories/rules/low_rank_rule.hpp>

#include "bind_rule.hpp"

namespace fw::python {

namespace {

template <class S> using LowRankRuleType = fw::LowRankRule<S>;
struct LowRankRule : PlainRule<LowRankRuleType> {
  static constexpr const char* name = "LowRankRule";
  static constexpr const char* doc =
      R"(A transition that is diagonal plus low rank, the recurrence of RWKV-7: removal -kappa, replacement kappa * a.

    W = W diag(decay) + (W removal) replacement^T + v k^T      y = W q

query, key, removal, replacement and decay [..., d_k], value and output [..., d_v]. Stable if
diag(decay) + removal replacement^T does not grow. Peng et al. 2025, arXiv 2503.14456.)";
};

}  // namespace

void bind_low_rank_rule(nb::module_& m) { bind_rule<LowRankRule>(m); }

}  // namespace fw::python
