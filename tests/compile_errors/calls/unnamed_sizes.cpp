// error: fastweights: sizes are given by name: ({.key_size = 64, .value_size = 32})
#include <fastweights/memories/rules/hebbian.hpp>

void test() { fw::HebbianMemory<float> memory(4, 3); }
