#include "networks/long_term_layers_of.hpp"

LONG_TERM_LAYERS(std::complex<double>);
