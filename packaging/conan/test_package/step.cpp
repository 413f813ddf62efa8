// One step of the delta rule, and the version of the package.
#include <cstdio>
#include <cstring>
#include <fastweights/algorithms/step.hpp>
#include <fastweights/core/version.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>

int main() {
  const fw::DeltaRule<float, 2, 2> memory;
  auto state = fw::initial_state(memory);
  const Eigen::Vector2f key(1, 0), value(3, 4);
  Eigen::Vector2f output;
  fw::step(memory, state, {key, value, 1.0f}, {key}, {output});
  std::printf("fastweights %s: norm %g\n", fw::version, double(output.norm()));
  return output == value && std::strcmp(fw::version, EXPECTED_VERSION) == 0 ? 0 : 1;
}
