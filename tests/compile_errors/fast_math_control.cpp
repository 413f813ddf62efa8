// The control of calls/fast_math.cpp: a program may take the risk.
// flags: -ffast-math -DFASTWEIGHTS_ALLOW_FAST_MATH
#include "example.hpp"
