// limit: 6, 500 MiB with fastweights::compiled_models
// A published model reads a prompt; then one token.
#include <fastweights/models/model.hpp>

int main(int count, char** arguments) {
  if (count < 2) return 0;
  const auto model = fw::models::load<float>(arguments[1], {.weights = fw::bfloat16});
  auto state = model.initial_state();
  fw::networks::Network<float>::Trace trace;
  Eigen::VectorXf logits(model.outputs());
  model.prefill(state, std::vector<int>{1, 2, 3}, logits, trace);
  model.forward(state, std::vector<int>{4}, logits, trace);
  return logits.allFinite() ? 0 : 1;
}
