// error: fastweights needs C++20: compile with -std=c++20
// flags: -std=c++17 -fmax-errors=1
#include <fastweights/fastweights.hpp>
