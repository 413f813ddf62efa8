#include <fastweights/memories/rules/test_time_training.hpp>
#include <fastweights/memories/rules/titans_learner.hpp>

#include "every_rule/rule.hpp"

namespace every_rule {

// With h = 4 d hidden units.
void add_models(Index d, Rules& rules) {
  const auto small_rates = [](auto& inputs, auto&) {
    inputs.rate /= static_cast<float>(inputs.key.rows());
  };
  rules.push_back(rule("TttLinear, mini-batches of 16", fw::TttLinear<float>({d}, {.batch = 16}),
                       {.squares = 8}, small_rates));
  rules.push_back(rule("TttMlp, mini-batches of 16, h = 4 d",
                       fw::TttMlp<float>({d}, {.batch = 16, .model = {4 * d}}), {.squares = 18 * 4},
                       small_rates));
  rules.push_back(rule("TitansMlp, h = 4 d", fw::TitansMlp<float>({d}, {.model = {4 * d}}),
                       {.squares = 9 * 4 + 11 * 4}, small_rates));
  rules.push_back(
      rule("NormalisedTitans", fw::NormalisedTitans<float>({d}), {.squares = 9}, small_rates));
}

}  // namespace every_rule
