// Compiles: what the other files here get wrong, done right. No error below is a wrong path.
#include "example.hpp"

static_assert(fw::assert_memory<Rule<>>());

void control() {
  fw::step(delta, state, {key, value, beta}, {query}, {output});
  const Eigen::VectorXf sum = key + query;
  fw::step(delta, state, {sum, value, beta}, {query}, {output});
}
