#include <fastweights/memories/rules/linear_attention.hpp>

#include "bind_rule.hpp"

namespace fw::python {

namespace {

template <class S> using LinearAttentionType = fw::LinearAttention<S>;
struct LinearAttention : PlainRule<LinearAttentionType> {
  static constexpr const char* name = "LinearAttention";
  static constexpr const char* doc =
      R"(Linear attention, the sum rule: adds the outer product of value and key.

    W = W + v k^T      y = W q

query and key [..., d_k], value and output [..., d_v]; W is d_v x d_k. Feature maps are the caller's.
Katharopoulos et al. 2020, arXiv 2006.16236.)";
};

}  // namespace

void bind_linear_attention(nb::module_& m) { bind_rule<LinearAttention>(m); }

}  // namespace fw::python
