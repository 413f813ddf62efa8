#include <fastweights/models/fla/gdn2.hpp>

#include "registry.hpp"

namespace {

const Registration registered({"GatedDeltaNet2"},
                              {fw::models::fla::gdn2<double>, fw::models::fla::gdn2<float>});

}  // namespace
