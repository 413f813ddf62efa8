#pragma once

#include <fastweights/any_memory/table/attention.hpp>
#include <fastweights/any_memory/table/continuous.hpp>
#include <fastweights/any_memory/table/deferred.hpp>
#include <fastweights/any_memory/table/delta_family.hpp>
#include <fastweights/any_memory/table/delta_rows.hpp>
#include <fastweights/any_memory/table/deltas.hpp>
#include <fastweights/any_memory/table/feature_mapped.hpp>
#include <fastweights/any_memory/table/gated.hpp>
#include <fastweights/any_memory/table/gated_deltas.hpp>
#include <fastweights/any_memory/table/groups.hpp>
#include <fastweights/any_memory/table/learners.hpp>
#include <fastweights/any_memory/table/models.hpp>
#include <fastweights/any_memory/table/recurrent.hpp>
#include <fastweights/any_memory/table/state_spaces.hpp>
#include <fastweights/any_memory/table/sums.hpp>
#include <fastweights/any_memory/table/windows.hpp>
