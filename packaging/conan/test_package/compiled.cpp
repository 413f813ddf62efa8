// One step of a memory by its name, of which the package has the code.
#include <cstdio>
#include <fastweights/any_memory/table.hpp>

int main() {
  const auto memory = fw::make_memory<float>("DeltaRule", {.key_size = 2});
  auto state = memory.initial_state();
  const Eigen::Vector2f key(1, 0), value(3, 4);
  const Eigen::Matrix<float, 1, 1> strength(1.0f);
  Eigen::Vector2f output;
  memory.step(state, {key, value, strength}, {key}, {output});
  std::printf("compiled: norm %g\n", double(output.norm()));
  return output == value ? 0 : 1;
}
