#include "uses.hpp"

std::array<double, 2> steps_in_b() { return steps(); }
