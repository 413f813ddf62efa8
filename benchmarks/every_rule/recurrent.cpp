#include <fastweights/memories/recurrent/delta_delta_net.hpp>
#include <fastweights/memories/recurrent/delta_lstm.hpp>
#include <fastweights/memories/recurrent/delta_mlp.hpp>
#include <fastweights/memories/recurrent/delta_rnn.hpp>
#include <fastweights/memories/recurrent/recurrent_delta_net.hpp>
#include <fastweights/memories/recurrent/self_referential_matrix.hpp>
#include <fastweights/memories/rules/programmer1991.hpp>

#include "every_rule/rule.hpp"

namespace every_rule {

void add_recurrent(Index d, Rules& rules) {
  rules.push_back(rule("DeltaRnn", fw::DeltaRnn<float>({d}), {.squares = 12}));
  rules.push_back(rule("DeltaLstm", fw::DeltaLstm<float>({d}), {.squares = 36}));
  rules.push_back(rule("DeltaDeltaNet", fw::DeltaDeltaNet<float>(d), {.squares = 24, .lines = 6}));
  rules.push_back(rule("DeltaMlp, h = 4 d", fw::DeltaMlp<float>(d, 4 * d), {.squares = 12 * 4}));
  rules.push_back(rule("RecurrentDeltaNet", fw::RecurrentDeltaNet<float>({d}), {.squares = 12}));
  rules.push_back(
      rule("SelfReferentialMatrix", fw::SelfReferentialMatrix<float>({d}), {.squares = 18}));
  rules.push_back(
      rule("Programmer1991", fw::Programmer1991<float>({d}), {.squares = 4, .also = "d² tanh"}));
}

}  // namespace every_rule
