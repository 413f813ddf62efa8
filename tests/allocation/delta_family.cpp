#include <fastweights/memories/rules/comba.hpp>
#include <fastweights/memories/rules/gated_delta_product.hpp>
#include <fastweights/memories/rules/gated_delta_rule_2.hpp>
#include <fastweights/memories/rules/gated_oja_rule.hpp>
#include <fastweights/memories/rules/longhorn.hpp>
#include <fastweights/memories/rules/low_rank_rule.hpp>
#include <fastweights/memories/rules/preconditioned_delta_rule.hpp>
#include <fastweights/memories/rules/rwkv6.hpp>
#include <fastweights/memories/rules/titans_memory.hpp>

#include "checks.hpp"

namespace {

template <int D> void check_all(Index d) {
  using S = float;
  check(fw::Comba<S, D, D>({d}));
  check(fw::GatedDeltaRule2<S, D, D>({d}));
  check(fw::GatedDeltaProduct<S, 2, D, D>({d}));
  check(fw::LowRankRule<S, D, D>({d}));
  check(fw::LowRankRule<S, D, D, fw::KeyValueRemoval>({d}), "without decay");
  check(fw::PreconditionedDeltaRule<double, D, D>({d}));
  check(fw::PreconditionedDeltaRule<double, D, D, D>({d}), "vector decay");
  check(fw::GatedOjaRule<S, D, D>({d}));
  check(fw::Longhorn<S, D, D>({d}));
  check(fw::Longhorn<S, D, D, fw::LonghornForm::exact>({d}), "exact");
  check(fw::Rwkv6<S, D, D>({d}));
  check(fw::TitansMemory<S, D, D>({d}));
}

}  // namespace

void check_delta_family() {
  check_all<3>(3);
  for (const Index d : {3, 64}) check_all<Dynamic>(d);
}
