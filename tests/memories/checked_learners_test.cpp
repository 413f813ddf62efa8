#include <fastweights/memories/attention/delta_former.hpp>
#include <fastweights/memories/attention/forgetting_attention.hpp>
#include <fastweights/memories/attention/parallax.hpp>
#include <fastweights/memories/attention/path_attention.hpp>
#include <fastweights/memories/recurrent/delta_delta_net.hpp>
#include <fastweights/memories/recurrent/delta_mlp.hpp>
#include <fastweights/memories/rules/atlas_memory.hpp>
#include <fastweights/memories/rules/mesa_memory.hpp>
#include <fastweights/memories/rules/miras_memory.hpp>
#include <fastweights/memories/rules/omega_memory.hpp>
#include <fastweights/memories/rules/test_time_training.hpp>
#include <fastweights/memories/rules/titans_learner.hpp>
#include <fastweights/memories/rules/titans_memory.hpp>

#include "memories/checked_cases.hpp"

/// \file
/// As checked_numbers_test.cpp, for memories that learn at test time and attention to the last
/// tokens.

using namespace checked_cases;

TEST_CASE("checked scan and step of learners: numbers that are not finite or too large",
          "[checked]") {
  refuses_numbers(Case(fw::TitansMemory<float>({5, 3})));
  refuses_numbers(Case(fw::MesaMemory<float>({5, 3})));
  refuses_numbers(Case(fw::Yaad<float>({5, 3})));
  refuses_numbers(Case(fw::Memora<float>({5, 3})));
  refuses_numbers(Case(fw::OmegaMemory<float>({5, 3}, 2)));
  refuses_numbers(Case(fw::AtlasMemory<float>({5, 3}, 2)));
  refuses_numbers(Case(fw::TttLinear<float>({5}, {.batch = 4})));
  refuses_numbers(Case(fw::TitansMlp<float>({5, 3}, {.model = {4}})));
}

TEST_CASE("checked scan and step of attention: numbers that are not finite or too large",
          "[checked]") {
  refuses_numbers(Case(fw::DeltaFormer<float>({5, 3}, {4})));
  refuses_numbers(Case(fw::ForgettingAttention<float>({5, 3}, {4})));
  refuses_numbers(Case(fw::Parallax<float>({5, 3}, {4})));
  refuses_numbers(Case(fw::PathAttention<float>({5, 3}, {4})));
}

TEST_CASE("checked scan and step of fast nets: numbers that are not finite or too large",
          "[checked]") {
  refuses_numbers(Case(fw::DeltaDeltaNet<float>(3)));
  refuses_numbers(Case(fw::DeltaMlp<float>(3, 4)));
}
