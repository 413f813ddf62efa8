#pragma once

#include <fastweights/core/signatures.hpp>
#include <string>

#include "models/capacity/recall.hpp"

/// The feature map of that name, "dpfp2" or "favor64"; `normalised`: its features divided by their
/// sum.
AnyMap<float> capacity_map(const std::string& name, fw::Index d_key, bool normalised);
