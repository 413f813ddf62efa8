// error: fastweights: an expression has no storage to view; evaluate it first
#include "example.hpp"

void test() { fw::step(delta, state, {key + query, value, beta}, {query}, {output}); }
