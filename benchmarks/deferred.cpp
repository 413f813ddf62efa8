#include <fastweights/memories/deferred.hpp>
#include <fastweights/memories/delta_rule.hpp>
#include <fastweights/memories/gated_delta_rule.hpp>

#include "measure.hpp"

namespace {

using fw::Index;

struct Delta {
  template <class S> using Rule = fw::DeltaRule<S>;
};
struct Kimi {
  template <class S>
  using Rule = fw::GatedDeltaRule<S, fw::Dynamic, fw::Dynamic, fw::KeyValueBetaVectorDecay>;
};

template <class Of, class Stored> struct Deferred {
  template <class S, int D> static auto make(Index d) {
    using M = typename Of::template Rule<S>;
    return fw::Deferred<M, 8, Stored>(M(d, d));
  }
  static double flops(double d) { return 6 * d * d; }
  static constexpr double passes = 1.125;  // read by every step, written by one of 8
};
struct DeferredDelta : Deferred<Delta, float> {
  static constexpr const char* name = "deferred_delta_rule";
};
struct DeferredDeltaBfloat16 : Deferred<Delta, Eigen::bfloat16> {
  static constexpr const char* name = "deferred_delta_rule_bfloat16";
};
struct DeferredDeltaHalf : Deferred<Delta, Eigen::half> {
  static constexpr const char* name = "deferred_delta_rule_half";
};
struct DeferredKimi : Deferred<Kimi, float> {
  static constexpr const char* name = "deferred_kimi_delta";
};

/// Steps: a scan is the rule's own.
template <class Kind> bool add_steps() {
  for (const Index d : {64, 128, 256}) {
    const auto m = Kind::template make<float, fw::Dynamic>(d);
    measure::add("step", Kind::name, m, 1, measure::step<Kind, std::remove_const_t<decltype(m)>>);
  }
  return true;
}

[[maybe_unused]] const bool added = add_steps<DeferredDelta>() &&
                                    add_steps<DeferredDeltaBfloat16>() &&
                                    add_steps<DeferredDeltaHalf>() && add_steps<DeferredKimi>();

}  // namespace
