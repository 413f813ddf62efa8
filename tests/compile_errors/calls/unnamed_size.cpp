// error: fastweights: sizes are given by name: ({.key_size = 64, .value_size = 32})
#include "example.hpp"

void test() { fw::DeltaRule<float> rule(4); }
