// A user's program with the compiled architectures: loads a published model, whatever it is.

#include <fastweights/models/model.hpp>

#ifndef FASTWEIGHTS_COMPILED_MODELS
#error "fastweights::compiled_models must define FASTWEIGHTS_COMPILED_MODELS"
#endif

int main(int, char** arguments) {
  const auto model = fw::models::load<float>(arguments[1]);
  auto state = model.initial_state();
  fw::networks::Network<float>::Trace trace;
  Eigen::MatrixXf logits(model.outputs(), 1);
  model.prefill(state, std::vector<int>{1, 2, 3}, logits, trace);
  return logits.allFinite() && logits.norm() > 0 ? 0 : 1;
}
