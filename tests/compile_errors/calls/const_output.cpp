// error: fastweights: an output must be writable
#include "example.hpp"

const Eigen::VectorXf const_output = output;
void test() { fw::step(delta, state, {key, value, beta}, {query}, {const_output}); }
