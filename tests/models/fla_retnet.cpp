#include <fastweights/models/fla/retnet.hpp>

#include "registry.hpp"

namespace {

const Registration registered({"MultiScaleRetention"},
                              {fw::models::fla::retnet<double>, fw::models::fla::retnet<float>});

}  // namespace
