#include <fastweights/memories/recurrent/delta_delta_net.hpp>
#include <fastweights/memories/recurrent/delta_mlp.hpp>
#include <fastweights/memories/rules/atlas_memory.hpp>
#include <fastweights/memories/rules/mesa_memory.hpp>
#include <fastweights/memories/rules/miras_memory.hpp>
#include <fastweights/memories/rules/omega_memory.hpp>
#include <fastweights/memories/rules/test_time_training.hpp>
#include <fastweights/memories/rules/titans_learner.hpp>
#include <fastweights/memories/rules/titans_memory.hpp>

#include "support/saves_its_state.hpp"

namespace {

TEST_CASE("save then load is the identity for states of memories that learn", "[weights]") {
  saves_its_state(fw::TitansMemory<float>({5, 3}));
  saves_its_state(fw::MesaMemory<float>({5, 3}));
  saves_its_state(fw::MesaMemory<double, 5, 3, fw::ConjugateGradients>({}, {3}));
  saves_its_state(fw::Yaad<double>({5, 3}));
  saves_its_state(fw::Memora<float, 5, 3>());
  saves_its_state(fw::OmegaMemory<float>({5, 3}, 2));
  saves_its_state(fw::AtlasMemory<double, 5, 3, 2>());
}

TEST_CASE("save then load is the identity in the middle of a mini-batch", "[weights]") {
  saves_its_state(fw::TttLinear<float>({5}, {.batch = 4}));  // after 7 tokens
  saves_its_state(fw::TttMlp<double>({5}, {.batch = 4, .model = {3}}));
}

TEST_CASE("save then load is the identity for states of models", "[weights]") {
  saves_its_state(fw::TitansMlp<double>({5, 3}, {.model = {4}}));
  saves_its_state(fw::NormalisedTitans<float>({5}));
  saves_its_state(fw::DeltaDeltaNet<float>(3));
  saves_its_state(fw::DeltaMlp<double>(3, 5));
}

}  // namespace
