#include <fastweights/models/nemotron_h.hpp>

#include "mamba2.hpp"

// Defined in a source of its own, to keep the compiler's memory small.
fw::networks::Network<float> nemotron_h_in_float(const fw::models::Config& c);

namespace {

fw::networks::Network<double> nemotron_h_in_double(const fw::models::Config& c) {
  return fw::models::nemotron_h<double>(c, test_options);
}

const Registration registered({"nemotron_h"}, {.in_double = nemotron_h_in_double,
                                               .in_float = nemotron_h_in_float,
                                               .states_by_value = true,
                                               .is_ignored = fw::models::is_nemotron_extra});

}  // namespace
