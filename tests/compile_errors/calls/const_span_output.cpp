// error: fastweights: an output must be writable
#include "example.hpp"

void test(std::span<const float> to) {
  fw::step(delta, state, {key, value, beta}, {query}, {to});
}
