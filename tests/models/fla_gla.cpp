#include <fastweights/models/fla/gla.hpp>

#include "registry.hpp"

namespace {

const Registration registered({"GatedLinearAttention"},
                              {fw::models::fla::gla<double>, fw::models::fla::gla<float>});

}  // namespace
