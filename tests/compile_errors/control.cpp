// The control: correct forms of the errors in the other files. It must compile, which shows that
// include paths and flags are right.
#include <span>
#include <vector>

#include "example.hpp"

static_assert(fw::assert_memory<Rule<>>());

void control() {
  fw::step(delta, state, {key, value, beta}, {query}, {output});
  const Eigen::VectorXf sum = key + query;
  fw::step(delta, state, {sum, value, beta}, {query}, {output});
  const std::span<const float> keys(key.data(), 3);
  std::vector<float> to(4);
  fw::step(delta, state, {keys, value, beta}, {query}, {to});
  fw::step(delta, state, {keys, value, beta}, {query}, {std::span<float>(to)});
}
