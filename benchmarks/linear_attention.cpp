#include <fastweights/memories/linear_attention.hpp>

#include "measure.hpp"

namespace {

using fw::Index;

struct Sum {
  static constexpr const char* name = "linear_attention";
  template <class S, int D> static auto make(Index d) { return fw::LinearAttention<S, D, D>(d, d); }
  static double flops(double d) { return 4 * d * d; }

  /// As one who knows Eigen would write it down.
  template <class All, class W> static void naive(All& all, W& w) {
    const auto& [k, v] = all.inputs;
    const auto& q = all.queries.query;
    auto& y = all.outputs.output;
    for (Index t = 0; t < k.cols(); ++t) {
      w.noalias() += v.col(t) * k.col(t).transpose();
      y.col(t).noalias() = w * q.col(t);
    }
  }
};

struct NormalisedSum {
  static constexpr const char* name = "linear_attention_normalised";
  template <class S, int D> static auto make(Index d) {
    return fw::LinearAttention<S, D, D, fw::AttentionNormaliser<S>>(d, d);
  }
  static double flops(double d) { return 4 * d * d; }
};

[[maybe_unused]] const bool added = measure::add_all<Sum>() && measure::add_some<NormalisedSum>();

}  // namespace
