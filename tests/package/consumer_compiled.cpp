// A user's program with the compiled library: a memory by its name, whose rule it does not compile.

#include <fastweights/any_memory/table.hpp>

#ifndef FASTWEIGHTS_COMPILED
#error "fastweights::compiled must define FASTWEIGHTS_COMPILED"
#endif

int main() {
  const auto memory = fw::make_memory<float>("DeltaRule", {.key_size = 2});
  auto state = memory.initial_state();
  const Eigen::Vector2f key(1, 0), value(3, 5);
  const Eigen::Matrix<float, 1, 1> beta(1);
  Eigen::Vector2f output;
  memory.step(state, {key, value, beta}, {key}, {output});
  return output == value && fw::memory_names<double>().size() > 40 ? 0 : 1;
}
