#include <fastweights/memories/rules/comba.hpp>
#include <fastweights/memories/rules/low_rank_rule.hpp>

#include "kernels/gradient_cases.hpp"

// Rules with look-up keys of their own.
namespace {

using fw::Dynamic;

template <class S> using Comba = fw::Comba<S>;
template <class S> using Rwkv7 = fw::LowRankRule<S>;
template <class S> using Iplr = fw::LowRankRule<S, Dynamic, Dynamic, fw::KeyValueRemoval>;
using Rules = gradients::Rules<Comba, Rwkv7, Iplr>;

TEST_CASE("kernels: gradients of corrections in every size", "[kernels]") {
  gradients::check_corrections_of_every_size<Rules>();
}

TEST_CASE("kernels: gradients of corrections of every length", "[kernels]") {
  gradients::check_corrections_of_every_length<Rules>();
}

TEST_CASE("kernels: gradients of corrections with decays of any size", "[kernels]") {
  gradients::check_corrections_with_any_decay<Rules>();
}

}  // namespace
