#pragma once

#include "registry.hpp"

/// An architecture whose states in the reference have values as rows. `build` takes a number of the
/// scalar type and config.json.
template <class Build> Architecture by_value(const Build& build) {
  return {.in_double = [=](const fw::models::Config& c) { return build(double(), c); },
          .in_float = [=](const fw::models::Config& c) { return build(float(), c); },
          .states_by_value = true};
}
