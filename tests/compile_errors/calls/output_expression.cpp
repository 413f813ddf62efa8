// error: fastweights: an expression has no storage to view; evaluate it first
#include "example.hpp"

void test() { fw::step(delta, state, {key, value, beta}, {query}, {2 * output}); }
