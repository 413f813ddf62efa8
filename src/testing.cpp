#include <fastweights/testing/implementation/gradient_check.hpp>
