// error: fastweights: braces are missing: fw::read(memory, state, {queries}
#include "example.hpp"

void test() { fw::read(delta, state, query, output); }
