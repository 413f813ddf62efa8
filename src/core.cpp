#include <fastweights/core/implementation/errors.hpp>
#include <fastweights/core/implementation/finite.hpp>
#include <fastweights/core/implementation/leaves.hpp>
#include <fastweights/core/implementation/snapshot.hpp>
#include <fastweights/core/implementation/stability.hpp>
