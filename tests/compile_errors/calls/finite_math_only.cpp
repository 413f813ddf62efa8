// error: or define FASTWEIGHTS_ALLOW_FAST_MATH
// flags: -ffinite-math-only
#include <fastweights/memories/rules/linear_attention.hpp>
