// error: fastweights: the scalar type differs from the memory's; cast it first
#include "example.hpp"

void test(std::span<const double> key) {
  fw::step(delta, state, {key, value, beta}, {query}, {output});
}
