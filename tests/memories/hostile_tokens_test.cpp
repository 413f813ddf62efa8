#include <fastweights/memories/attention/delta_former.hpp>
#include <fastweights/memories/attention/forgetting_attention.hpp>
#include <fastweights/memories/attention/parallax.hpp>
#include <fastweights/memories/attention/path_attention.hpp>
#include <fastweights/memories/rules/log_linear_attention.hpp>
#include <fastweights/memories/rules/test_time_training.hpp>

#include "support/hostile_memories.hpp"

namespace {

using hostile::refuses_hostile_states;

TEST_CASE("attention to the last tokens refuses a number of tokens that no run of writes gives",
          "[hostile]") {
  refuses_hostile_states(fw::ForgettingAttention<float>({.key_size = 3}, {5}), {"history.length"});
  refuses_hostile_states(fw::PathAttention<float>({.key_size = 3}, {5}), {"history.length"});
  refuses_hostile_states(fw::DeltaFormer<float>({.key_size = 3}, {5}), {"history.length"});
  refuses_hostile_states(fw::Parallax<float>({.key_size = 3}, {5}), {"history.length"});
}

TEST_CASE("log-linear attention refuses a number of tokens that no run of writes gives",
          "[hostile]") {
  refuses_hostile_states(fw::LogLinearAttention<float>({.key_size = 3}, 4), {"length"});
}

TEST_CASE("test-time training refuses more tokens than its mini-batch has", "[hostile]") {
  refuses_hostile_states(fw::TttLinear<float>({.key_size = 3}, {.batch = 3}));
}

}  // namespace
