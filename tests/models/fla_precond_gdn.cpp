#include <fastweights/models/fla/precond_gdn.hpp>

#include "registry.hpp"

namespace {

const Registration registered({"PrecondGatedDeltaNet"}, {fw::models::fla::precond_gdn<double>,
                                                         fw::models::fla::precond_gdn<float>});

}  // namespace
