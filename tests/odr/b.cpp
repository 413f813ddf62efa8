#include "checks.hpp"

float recall_in_b() { return recall(); }
