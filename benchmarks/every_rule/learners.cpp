#include <fastweights/memories/rules/mesa_memory.hpp>
#include <fastweights/memories/rules/miras_memory.hpp>
#include <fastweights/memories/rules/titans_memory.hpp>

#include "every_rule/rule.hpp"

namespace every_rule {

void add_learners(Index d, Rules& rules) {
  using Iterative = fw::MesaMemory<float, -1, -1, fw::ConjugateGradients>;
  const auto small_steps = [](auto& inputs, auto& state) {
    inputs.beta *= 0.01f;
    state.A.setRandom();
  };
  rules.push_back(rule("TitansMemory", fw::TitansMemory<float>({d}), {.squares = 9}));
  rules.push_back(
      rule("MesaMemory, exact", fw::MesaMemory<float>({d}), {.squares = 8, .cubes = 2. / 3}));
  rules.push_back(rule("… with 30 conjugate gradients", Iterative({d}), {.squares = 8 + 2 * 30}));
  rules.push_back(rule("Yaad", fw::Yaad<float>({d}), {.squares = 7}));
  rules.push_back(rule("Moneta", fw::Moneta<float>({d}), {.squares = 17}, small_steps));
  rules.push_back(rule("Memora", fw::Memora<float>({d}), {.squares = 13, .also = "2 d² exp"}));
}

}  // namespace every_rule
