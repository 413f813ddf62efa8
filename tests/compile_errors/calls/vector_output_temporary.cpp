// error: fastweights: an output must outlive the call; give the matrix a name
#include <vector>

#include "example.hpp"

void test() { fw::step(delta, state, {key, value, beta}, {query}, {std::vector<float>(4)}); }
