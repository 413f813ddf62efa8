#include <fastweights/memories/recurrent/delta_delta_net.hpp>
#include <fastweights/memories/recurrent/delta_mlp.hpp>
#include <fastweights/memories/rules/test_time_training.hpp>
#include <fastweights/memories/rules/titans_learner.hpp>

#include "checks.hpp"

namespace {

template <int D> void check_all(Index d) {
  using S = float;
  check(fw::TttLinear<S, D>({d}, {.batch = 4}), "linear");
  check(fw::TttMlp<S, D, D>({d}, {.batch = 4, .model = {d}}), "MLP");
  check(fw::TitansMlp<S, D, D, D>({d}, {.model = {d}}), "MLP");
  check(fw::NormalisedTitans<S, D>({d}), "normalised");
  check(fw::DeltaDeltaNet<S, D>(d));
  check(fw::DeltaMlp<S, D, D>(d, d));
}

}  // namespace

void check_inner_models() {
  check_all<3>(3);
  for (const Index d : {3, 64}) check_all<Dynamic>(d);
}
