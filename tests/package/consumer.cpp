// A user's program: the delta rule writes one token and reads it back.

#include <fastweights/fastweights.hpp>
#include <iostream>

int main() {
  const fw::DeltaRule<double, 3, 2> memory;
  auto state = fw::initial_state(memory);
  const Eigen::Vector3d key(0, 1, 0);
  const Eigen::Vector2d value(3, 4);
  Eigen::Vector2d output;
  fw::step(memory, state, {key, value, 1.0}, {key}, {output});
  std::cout << output.norm() << '\n';
}
