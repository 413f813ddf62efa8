#include <fastweights/models/fla/delta_net.hpp>

#include "registry.hpp"

namespace {

const Registration registered({"DeltaNet"}, {fw::models::fla::delta_net<double>,
                                             fw::models::fla::delta_net<float>});

}  // namespace
