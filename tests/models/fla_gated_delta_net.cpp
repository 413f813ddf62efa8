#include <fastweights/models/fla/gated_delta_net.hpp>

#include "registry.hpp"

namespace {

const Registration registered({"GatedDeltaNet"}, {fw::models::fla::gated_delta_net<double>,
                                                  fw::models::fla::gated_delta_net<float>});

}  // namespace
