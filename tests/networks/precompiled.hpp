#pragma once

#include <fastweights/layers/parts.hpp>
#include <fastweights/networks/operations.hpp>

#include "support/precompiled.hpp"

/// \file
/// The precompiled header: what most tests of networks include.
