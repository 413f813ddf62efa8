#pragma once

#include <fastweights/models/load.hpp>
#include <fastweights/models/save.hpp>
#include <fastweights/models/table/groups.hpp>
#include <fastweights/networks/operations.hpp>

#include "support/catch.hpp"

/// \file
/// The precompiled header: what most tests of folders include.
