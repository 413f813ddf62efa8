#include "checks.hpp"

float recalled_in_b() { return recalled(); }
