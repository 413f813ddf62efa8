// An error handler may throw an exception of its own. The default exception, std::invalid_argument,
// is in the other tests.
#include <fastweights/algorithms/step.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <string>

struct OwnError {
  std::string message;
};

void on_error(const char* message) { throw OwnError{message}; }

int main() {
  const fw::DeltaRule<float> memory({.key_size = 4, .value_size = 3});
  auto state = fw::initial_state(memory);
  state.W.setOnes();
  const Eigen::VectorXf key = Eigen::VectorXf::Ones(3), value = key;
  try {
    fw::write(memory, state, {key, value, 1.0f});
  } catch (const OwnError& error) {
    const bool expected = error.message == "DeltaRule: key has 3 rows, the memory expects 4";
    return expected && state.W == Eigen::MatrixXf::Ones(3, 4) ? 0 : 1;
  }
  return 1;  // no error
}
