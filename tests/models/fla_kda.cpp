#include <fastweights/models/fla/kda.hpp>

#include "registry.hpp"

namespace {

const Registration registered({"KimiDeltaAttention"},
                              {fw::models::fla::kda<double>, fw::models::fla::kda<float>});

}  // namespace
