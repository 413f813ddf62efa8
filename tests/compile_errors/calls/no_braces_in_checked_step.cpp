// error: fastweights: braces are missing: fw::checked_step(memory, state, {what is written}
#include "example.hpp"

void test() { fw::checked_step(delta, state, key, value, beta, query, output); }
