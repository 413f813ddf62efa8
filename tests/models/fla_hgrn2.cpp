#include <fastweights/models/fla/hgrn2.hpp>

#include "registry.hpp"

namespace {

const Registration registered({"HGRN2Attention"},
                              {fw::models::fla::hgrn2<double>, fw::models::fla::hgrn2<float>});

}  // namespace
