// error: fastweights: pass an Eigen matrix, map or block here
#include "example.hpp"

void test() { fw::step(delta, state, {key, 1.0f, beta}, {query}, {output}); }
