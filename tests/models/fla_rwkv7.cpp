#include <fastweights/models/fla/rwkv7.hpp>

#include "registry.hpp"

namespace {

const Registration registered({"RWKV7Attention"},
                              {fw::models::fla::rwkv7<double>, fw::models::fla::rwkv7<float>});

}  // namespace
