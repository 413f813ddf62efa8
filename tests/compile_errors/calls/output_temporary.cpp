// error: fastweights: an output must outlive the call; give the matrix a name
#include "example.hpp"

void test() { fw::step(delta, state, {key, value, beta}, {query}, {Eigen::VectorXf(4)}); }
