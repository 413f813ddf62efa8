// error: fastweights: pass an Eigen matrix, map or block here, or a std::span
#include "example.hpp"

void test() { fw::step(delta, state, {key, 1.0f, beta}, {query}, {output}); }
