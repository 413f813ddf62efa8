#include <fastweights/memories/rules/delta_rule.hpp>

#include "bind_rule.hpp"

namespace fw::python {

namespace {

struct NormalisedDeltaRule {
  template <class S> using type = fw::DeltaRule<S, Dynamic, Dynamic, AttentionNormaliser<S>>;
  static constexpr const char* name = "NormalisedDeltaRule";
  static constexpr const char* doc =
      R"(The delta rule with the attention normaliser, with w = z.k (1 if it is exactly 0), g = 1 / (w + epsilon):

    u = beta w g (v - g W k)      W = W + u k^T      z = z + k      y = W q / (z.q + epsilon)

query and key [..., d_k], value and output [..., d_v], beta one number. Keys and queries should be
positive. Schlag, Irie, Schmidhuber 2021, arXiv 2102.11174, section 4.2.)";
  static constexpr std::array settings{Setting{"epsilon", 1e-5}};
  template <class S> static type<S> make(Sizes<> sizes, double epsilon) {
    return type<S>(sizes, AttentionNormaliser<S>{S(epsilon)});
  }
};

}  // namespace

void bind_normalised_delta_rule(nb::module_& m) { bind_rule<NormalisedDeltaRule>(m); }

}  // namespace fw::python
