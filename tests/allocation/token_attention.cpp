#include <fastweights/memories/attention/delta_former.hpp>
#include <fastweights/memories/attention/forgetting_attention.hpp>
#include <fastweights/memories/attention/parallax.hpp>
#include <fastweights/memories/attention/path_attention.hpp>

#include "checks.hpp"

namespace {

template <int D> void check_all(Index d) {
  const fw::AttentionOptions options{sequence_length / 2};
  check(fw::ForgettingAttention<float, D, D>({d}, options));
  check(fw::PathAttention<float, D, D>({d}, options));
  check(fw::DeltaFormer<float, D, D>({d}, options));
  check(fw::Parallax<float, D, D>({d}, options));
}

}  // namespace

void check_token_attention() {
  check_all<3>(3);
  for (const Index d : {3, 64}) check_all<Dynamic>(d);
}
