#include <fastweights/training/implementation/adamw.hpp>
