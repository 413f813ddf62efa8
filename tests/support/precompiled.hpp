#pragma once

#include <fastweights/any_memory/table.hpp>
#include <fastweights/layers/layer.hpp>
#include <fastweights/testing/any_gradient_check.hpp>

#include "support/catch.hpp"

/// \file
/// The precompiled header: what most tests include.
