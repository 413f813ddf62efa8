#include <fastweights/any_memory/any_memory.hpp>
#include <fastweights/memories/adaptors/deferred.hpp>
#include <fastweights/memories/rules/comba.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_product.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule_2.hpp>
#include <fastweights/memories/rules/low_rank_rule.hpp>

#include "support/catch.hpp"
#include "support/laws.hpp"
#include "support/sizes.hpp"

/// \file
/// Deferred memories that are not in the table: other rules and other numbers of tokens.

namespace {

using Eigen::half;
using fw::AnyMemory;
using fw::Deferred;
using fw::Dynamic;
using fw::Index;
using Sizes = fw::Sizes<Dynamic, Dynamic>;
template <class S> using Make = AnyMemory<S> (*)(Sizes);

template <class M, int N, class Stored = typename M::Scalar, int R = 0>
AnyMemory<typename M::Scalar> deferred(Sizes sizes) {
  return Deferred<M, N, Stored, R>(M(sizes));
}

void at_all_sizes(Make<double> make, bool positive = false) {
  for (const Index d : ::sizes({1, 3, 17, 63, 64, 65, 100}, {1, 3, 17, 65}))
    laws::all(make({d, d}), positive);
  for (const auto& [dk, dv] : {std::pair<Index, Index>{1, 5}, {5, 1}, {3, 17}, {65, 4}})
    laws::all(make({dk, dv}), positive);
}
void in_float(Make<float> rounded, Make<double> exact) {
  for (const auto& [dk, dv] : {std::pair<Index, Index>{1, 5}, {5, 1}, {3, 17}, {65, 4}, {64, 64}})
    laws::float_follows_double(laws::runs_of(rounded({dk, dv})), laws::runs_of(exact({dk, dv})));
}

TEST_CASE("deferred memories that write at every token obey the laws", "[laws][deferred]") {
  at_all_sizes(deferred<fw::GatedDeltaRule<double>, 1>);
}

TEST_CASE("deferred memories whose keys differ, or with several writes per token, obey the laws",
          "[laws][deferred]") {
  at_all_sizes(deferred<fw::Comba<double>, 8>);
  at_all_sizes(deferred<fw::GatedDeltaRule2<double>, 3>);
  at_all_sizes(deferred<fw::GatedDeltaProduct<double, 3>, 8>);
  at_all_sizes(deferred<fw::LowRankRule<double>, 8>);
  in_float(deferred<fw::Comba<float>, 8>, deferred<fw::Comba<double>, 8>);
  in_float(deferred<fw::GatedDeltaRule2<float>, 3>, deferred<fw::GatedDeltaRule2<double>, 3>);
  in_float(deferred<fw::LowRankRule<float>, 8>, deferred<fw::LowRankRule<double>, 8>);
}

TEST_CASE("deferred memories that take back more tokens than they defer obey the laws",
          "[laws][deferred]") {
  using Normalised = fw::DeltaRule<double, Dynamic, Dynamic, fw::AttentionNormaliser<double>>;
  at_all_sizes(deferred<Normalised, 2, double, 5>, true);
}

TEST_CASE("deferred memories in 16 and 8 bits: states are values, scans agree with steps",
          "[laws][deferred]") {
  const auto check = [](Make<float> make) {
    for (const Index d : {3, 33, 64}) {
      const auto runs = laws::runs_of(make({d, d}));
      laws::state_is_a_value(runs);
      laws::scan_is_steps(runs);
      laws::wrong_sizes_are_refused(runs);
    }
  };
  check(deferred<fw::GatedDeltaRule<float>, 4, half>);
  check(deferred<fw::DeltaRule<float>, 4, half, 2>);
  check(deferred<fw::DeltaRule<float>, 3, std::int8_t, 2>);
}

}  // namespace
