// error: no matching
#include <fastweights/core/snapshot.hpp>

#include "example.hpp"

const auto fixed = state;
void test() { fw::Snapshot(state).restore(fixed); }
