#include <fastweights/memories/rules/atlas_memory.hpp>
#include <fastweights/memories/rules/omega_memory.hpp>

#include "every_rule/rule.hpp"

namespace every_rule {

void add_windows(Index d, Rules& rules) {
  constexpr Index window = 4;  // c
  const auto mean = [](auto& inputs, auto&) { inputs.weights /= float(window); };
  rules.push_back(rule("OmegaMemory, c = 4", fw::OmegaMemory<float>({d}, window),
                       {.squares = 4 * window + 3}, mean));
  // 20 m² n + 10 m³ = 30 d³
  rules.push_back(rule("AtlasMemory, c = 4", fw::AtlasMemory<float>({d}, window),
                       {.squares = 4 * window + 6, .cubes = 30}, mean));
}

}  // namespace every_rule
