#include <fastweights/memories/rules/comba.hpp>
#include <fastweights/memories/rules/gated_delta_product.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <fastweights/memories/rules/gated_delta_rule_2.hpp>
#include <fastweights/memories/rules/low_rank_rule.hpp>

#include "laws/deferred_sizes.hpp"

/// \file
/// Deferred memories that are not in the table: rules whose keys differ, or with several writes.

namespace {

using laws::at_all_sizes;
using laws::deferred;
using laws::in_float;

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

}  // namespace
