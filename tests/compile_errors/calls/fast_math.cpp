// error: -ffast-math removes compensated sums and tests for NaN
// flags: -ffast-math
#include "example.hpp"
