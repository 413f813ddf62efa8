#include <models/sorting/sorting_model_of.hpp>

SORTING_MIXERS(, double);
