// error: fastweights: a size is missing; state_extents() and the functions of a signature give
#include "example.hpp"

struct BetaWithoutSize : fw::KeyValueBeta<3, 4> {
  Write<fw::Extents> write() const { return {{3, 1}, {4, 1}}; }
};
void test() { BetaWithoutSize().write(); }
