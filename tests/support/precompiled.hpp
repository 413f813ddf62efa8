#pragma once

#include <fastweights/layers/layer.hpp>

#include "support/laws.hpp"

/// \file
/// What most tests include, compiled once.
