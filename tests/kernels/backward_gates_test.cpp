#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule_2.hpp>
#include <fastweights/memories/rules/longhorn.hpp>
#include <fastweights/memories/rules/rwkv6.hpp>

#include "kernels/gradient_cases.hpp"

// Rules with gates of their own, one β per row, or reads before the write.
namespace {

using fw::Dynamic;

template <class S> using GatedDelta2 = fw::GatedDeltaRule2<S>;
template <class S> using Rwkv6 = fw::Rwkv6<S>;
template <class S> using ExactLonghorn = fw::Longhorn<S, Dynamic, Dynamic, fw::LonghornForm::exact>;
template <class S>
using VectorDelta = fw::DeltaRule<S, Dynamic, Dynamic, fw::NoNormaliser, fw::KeyValueVectorBeta>;
using Rules = gradients::Rules<GatedDelta2, Rwkv6, ExactLonghorn, VectorDelta>;

TEST_CASE("kernels: gradients of gates in every size", "[kernels]") {
  gradients::check_corrections_of_every_size<Rules>();
}

TEST_CASE("kernels: gradients of gates of every length", "[kernels]") {
  gradients::check_corrections_of_every_length<Rules>();
}

TEST_CASE("kernels: gradients of gates with decays of any size", "[kernels]") {
  gradients::check_corrections_with_any_decay<Rules>();
}

}  // namespace
