#pragma once

#include <fastweights/networks/operations/combine.hpp>
#include <fastweights/networks/operations/elementwise.hpp>
#include <fastweights/networks/operations/experts.hpp>
#include <fastweights/networks/operations/memory.hpp>
#include <fastweights/networks/operations/norms.hpp>
#include <fastweights/networks/operations/rows.hpp>
#include <fastweights/networks/operations/time.hpp>
#include <fastweights/networks/operations/weights.hpp>

/// \file
/// All operations of networks.
