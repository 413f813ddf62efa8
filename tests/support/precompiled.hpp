#pragma once

#include <fastweights/layers/layer.hpp>

#include "support/laws.hpp"

/// \file
/// The precompiled header: what most tests include.
