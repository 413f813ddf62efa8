// The control: correct forms of the errors in the other files. It must compile, which shows that
// include paths and flags are right.
#include "example.hpp"

static_assert(fw::assert_memory<Rule<>>());

void control() {
  fw::step(delta, state, {key, value, beta}, {query}, {output});
  const Eigen::VectorXf sum = key + query;
  fw::step(delta, state, {sum, value, beta}, {query}, {output});
}
