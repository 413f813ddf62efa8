#include <fastweights/memories/rules/mlstm.hpp>

#include "bind_rule.hpp"

namespace fw::python {

namespace {

struct Mlstm {
  template <class S> using type = fw::Mlstm<S>;
  static constexpr const char* name = "Mlstm";
  static constexpr const char* doc =
      R"(mLSTM, the matrix memory of xLSTM. W and n are stored divided by e^m, so that no exponential overflows.

    m' = max(log sigmoid(f) + m, i)      a = exp(log sigmoid(f) + m - m')      b = exp(i - m')
    W = a W + b v k^T      n = a n + b k      y = W q / (max(|n.q|, exp(-m')) + epsilon)

query and key [..., d_k], value and output [..., d_v], input_gate i and forget_gate f one number each,
before their activation. Divide the queries by sqrt(d_k) as the paper does. Beck et al. 2024, arXiv
2405.04517, eq. 19-27.)";
  static constexpr std::array settings{Setting{"epsilon", 1e-6}};
  template <class S> static type<S> make(Sizes<> sizes, double epsilon) {
    return type<S>(sizes, S(epsilon));
  }
};

}  // namespace

void bind_mlstm(nb::module_& m) { bind_rule<Mlstm>(m); }

}  // namespace fw::python
