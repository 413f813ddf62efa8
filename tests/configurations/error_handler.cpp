// A program with an error handler of its own (-DFASTWEIGHTS_ERROR_HANDLER=on_error), without
// exceptions. The handler receives the message instead of the default, which would abort.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fastweights/algorithms/step.hpp>
#include <fastweights/core/state.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>

void on_error(const char* message) {
  std::printf("handled: %s\n", message);
  std::exit(std::strcmp(message, "DeltaRule: key has 3 rows, the memory expects 4") == 0 ? 0 : 1);
}

int main() {
  const fw::DeltaRule<float> memory({.key_size = 4, .value_size = 3});
  auto state = fw::initial_state(memory);
  const Eigen::VectorXf key = Eigen::VectorXf::Ones(3), value = key;
  fw::write(memory, state, {key, value, 1.0f});
  return 1;  // no error
}
