// error: fastweights: the scalar type differs from the memory's; cast it first
#include "example.hpp"

const Eigen::VectorXd key_in_double = key.cast<double>();
void test() { fw::step(delta, state, {key_in_double, value, beta}, {query}, {output}); }
