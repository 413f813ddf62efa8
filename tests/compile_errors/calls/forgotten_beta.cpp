// error: WriteToken<fw::DeltaRule<float
#include "example.hpp"

void test() { fw::step(delta, state, {key, value}, {query}, {output}); }
