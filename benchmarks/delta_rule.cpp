#include <fastweights/memories/delta_rule.hpp>

#include "measure.hpp"

namespace {

using fw::Index;

struct Delta {
  static constexpr const char* name = "delta_rule";
  template <class S, int D> static auto make(Index d) { return fw::DeltaRule<S, D, D>(d, d); }
  static double flops(double d) { return 6 * d * d; }

  /// As one who knows Eigen would write it down.
  template <class All, class W> static void naive(All& all, W& w) {
    const auto& [k, v, beta] = all.inputs;
    const auto& q = all.queries.query;
    auto& y = all.outputs.output;
    for (Index t = 0; t < k.cols(); ++t) {
      w.noalias() += beta(t) * (v.col(t) - w * k.col(t)) * k.col(t).transpose();
      y.col(t).noalias() = w * q.col(t);
    }
  }
};

struct VectorBeta {
  static constexpr const char* name = "delta_rule_vector_beta";
  template <class S, int D> static auto make(Index d) {
    return fw::DeltaRule<S, D, D, fw::NoNormaliser, fw::KeyValueVectorBeta>(d, d);
  }
  static double flops(double d) { return 6 * d * d; }
};

bool add_scaling() {
  measure::add_scaling<Delta, float, 64>();
  measure::add_scaling<Delta, float, 128>();
  for (const Index d : {64, 128}) measure::add_parallel<Delta, float>(d);
  return true;
}

[[maybe_unused]] const bool added =
    measure::add_all<Delta>() && measure::add_some<VectorBeta>() && add_scaling();

}  // namespace
