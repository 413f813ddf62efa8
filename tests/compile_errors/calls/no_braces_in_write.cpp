// error: fastweights: braces are missing: fw::write(memory, state, {what is written}
#include "example.hpp"

void test() { fw::write(delta, state, key, value, beta); }
