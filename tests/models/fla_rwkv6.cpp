#include <fastweights/models/fla/rwkv6.hpp>

#include "registry.hpp"

namespace {

const Registration registered({"RWKV6Attention"},
                              {fw::models::fla::rwkv6<double>, fw::models::fla::rwkv6<float>});

}  // namespace
