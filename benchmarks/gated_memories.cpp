#include <fastweights/memories/delta_rule.hpp>
#include <fastweights/memories/gated_delta_rule.hpp>
#include <fastweights/memories/gated_linear_attention.hpp>

#include "measure.hpp"

namespace {

using fw::Index;

/// Counted as the delta rule, without the fading, so that the two can be compared.
struct GatedDelta {
  static constexpr const char* name = "gated_delta";
  template <class S, int D> static auto make(Index d) { return fw::GatedDeltaRule<S, D, D>(d, d); }
  template <class S, int D> static auto ungated(Index d) { return fw::DeltaRule<S, D, D>(d, d); }
  static double flops(double d) { return 6 * d * d; }

  /// As one who knows Eigen would write it down.
  template <class All, class W> static void naive(All& all, W& w) {
    const auto& [k, v, beta, decay] = all.inputs;
    const auto& q = all.queries.query;
    auto& y = all.outputs.output;
    for (Index t = 0; t < k.cols(); ++t) {
      w *= decay(t);
      w.noalias() += beta(t) * (v.col(t) - w * k.col(t)) * k.col(t).transpose();
      y.col(t).noalias() = w * q.col(t);
    }
  }
};

struct KimiDelta {
  static constexpr const char* name = "kimi_delta";
  template <class S, int D> static auto make(Index d) {
    return fw::GatedDeltaRule<S, D, D, fw::KeyValueBetaVectorDecay>(d, d);
  }
  static double flops(double d) { return 6 * d * d; }
};

struct GatedSum {
  static constexpr const char* name = "gated_linear_attention";
  template <class S, int D> static auto make(Index d) {
    return fw::GatedLinearAttention<S, D, D>(d, d);
  }
  static double flops(double d) { return 4 * d * d; }
};

[[maybe_unused]] const bool added = measure::add_all<GatedDelta>() &&
                                    measure::add_some<KimiDelta>() && measure::add_some<GatedSum>();

}  // namespace
