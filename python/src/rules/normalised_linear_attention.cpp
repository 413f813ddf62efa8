#include <fastweights/memories/rules/linear_attention.hpp>

#include "bind_rule.hpp"

namespace fw::python {

namespace {

struct NormalisedLinearAttention {
  template <class S> using type = fw::LinearAttention<S, Dynamic, Dynamic, AttentionNormaliser<S>>;
  static constexpr const char* name = "NormalisedLinearAttention";
  static constexpr const char* doc =
      R"(Linear attention divided by the sum of its weights, with compensated sums for long streams.

    W = W + v k^T      z = z + k      y = W q / (z.q + epsilon)

query and key [..., d_k], value and output [..., d_v]. Keys and queries should be positive (a feature
map of the caller). Katharopoulos et al. 2020, arXiv 2006.16236, eq. 18-20.)";
  static constexpr std::array settings{Setting{"epsilon", 1e-5}};
  template <class S> static type<S> make(Sizes<> sizes, double epsilon) {
    return type<S>(sizes, AttentionNormaliser<S>{S(epsilon)});
  }
};

}  // namespace

void bind_normalised_linear_attention(nb::module_& m) { bind_rule<NormalisedLinearAttention>(m); }

}  // namespace fw::python
