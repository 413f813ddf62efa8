// error: fastweights: braces are missing: fw::step(memory, state, {what is written}
#include "example.hpp"

void test() { fw::step(delta, state, key, value, beta, query, output); }
