#include <fastweights/models/nemotron_h.hpp>

#include "mamba2.hpp"

fw::networks::Network<float> nemotron_h_in_float(const fw::models::Config& c) {
  return fw::models::nemotron_h<float>(c, test_options);
}
