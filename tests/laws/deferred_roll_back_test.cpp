#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_product.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>

#include "laws/deferred_sizes.hpp"

/// \file
/// Deferred memories that are not in the table: other numbers of tokens, tokens that are taken
/// back, and matrices in 16 and 8 bits.

namespace {

using Eigen::half;
using fw::Dynamic;
using fw::Index;
using laws::at_all_sizes;
using laws::deferred;
using Kimi = fw::GatedDeltaRule<double, Dynamic, Dynamic, fw::KeyValueBetaVectorDecay>;
using Normalised = fw::DeltaRule<double, Dynamic, Dynamic, fw::AttentionNormaliser<double>>;

TEST_CASE("deferred memories whose last tokens cannot be taken back obey the laws",
          "[laws][deferred]") {
  at_all_sizes(deferred<Kimi, 8>);
  at_all_sizes(deferred<Normalised, 5>, true);
}

TEST_CASE("deferred memories that take back other numbers of tokens obey the laws",
          "[laws][deferred]") {
  at_all_sizes(deferred<Kimi, 4, double, 3>);
  at_all_sizes(deferred<fw::GatedDeltaProduct<double, 2>, 3, double, 1>);
  at_all_sizes(deferred<Normalised, 2, double, 5>, true);
}

TEST_CASE("deferred memories in 16 and 8 bits: states are values, scans agree with steps",
          "[laws][deferred]") {
  const auto check = [](laws::Make<float> make) {
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
