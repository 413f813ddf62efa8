#include <fastweights/models/fla/comba.hpp>

#include "registry.hpp"

namespace {

const Registration registered({"Comba"},
                              {fw::models::fla::comba<double>, fw::models::fla::comba<float>});

}  // namespace
